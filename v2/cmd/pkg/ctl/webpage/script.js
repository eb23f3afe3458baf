"use strict";
// Everything works without this script except search, copying, the theme and live updates. It holds
// no data: names of devices and servers are in the document, escaped.
(() => {
  const root = document.documentElement;
  root.classList.add("script");

  // Theme: the system's, until the user chooses.
  const darkSystem = matchMedia("(prefers-color-scheme: dark)");
  const themeKey = "csi-proxy-theme";
  const stored = { // storage may be forbidden
    get() { try { return localStorage.getItem(themeKey); } catch { return null; } },
    set(value) { try { localStorage.setItem(themeKey, value); } catch { /* until the page is closed */ } },
  };
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches;
  if (["light", "dark"].includes(stored.get())) root.dataset.theme = stored.get();

  const byId = (id) => document.getElementById(id);

  function theme() {
    const button = byId("theme");
    const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      stored.set(root.dataset.theme);
      name();
    });
    darkSystem.addEventListener("change", name);
    name();
  }

  // Search: all words must occur in an item.
  const texts = new WeakMap();
  function textOf(item) {
    if (!texts.has(item)) texts.set(item, item.textContent.replace(/\s+/g, " ").toLowerCase());
    return texts.get(item);
  }

  function filter() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = byId("only").checked;
    const active = only || words.length > 0;
    let shown = 0, all = 0;
    for (const list of document.querySelectorAll("[data-list]")) {
      let visible = 0;
      const items = list.querySelectorAll("[data-item]");
      for (const item of items) {
        const match = (!only || item.hasAttribute("data-problem")) && words.every((word) => textOf(item).includes(word));
        item.hidden = !match;
        if (match) visible++;
      }
      list.hidden = active && visible === 0;
      if (list.id === "table") continue; // the same objects once more
      shown += visible;
      all += items.length;
    }
    byId("nothing").hidden = !active || shown > 0;
    byId("matches").textContent = active ? `${shown} of ${all}` : "";
  }

  function search() {
    const field = byId("search");
    field.addEventListener("input", filter);
    byId("only").addEventListener("change", filter);
    byId("tools").addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement;
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        field.focus();
      } else if (event.key === "Escape" && event.target === field) {
        field.value = "";
        filter();
      }
    });
    // A link to something that the filter hides shows everything.
    addEventListener("hashchange", () => {
      const target = byId(location.hash.slice(1));
      for (let folded = target?.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
      if (target && target.closest("[hidden]")) {
        field.value = "";
        byId("only").checked = false;
        filter();
        target.scrollIntoView();
      }
    });
    filter(); // the browser may have kept the field from before
  }

  // Sorting: a click on a column, and once more for the other direction.
  let order = null;
  function sort() {
    const body = document.querySelector("#volumes-table tbody");
    if (!order || !body) return;
    const key = (row) => row.cells[order.column].dataset.key ?? row.cells[order.column].textContent;
    const compare = new Intl.Collator(undefined, { numeric: true }).compare;
    body.append(...[...body.rows].sort((a, b) => order.direction * compare(key(a), key(b))));
    for (const [i, head] of [...document.querySelectorAll("#volumes-table th")].entries()) {
      if (i === order.column) head.ariaSort = order.direction > 0 ? "ascending" : "descending";
      else head.removeAttribute("aria-sort");
    }
  }

  // Copying.
  async function copy(button) {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  // Paper shows what is closed on the screen.
  function print() {
    const opened = [];
    addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("details:not([open])")) {
        details.open = true;
        opened.push(details);
      }
    });
    addEventListener("afterprint", () => {
      for (const details of opened.splice(0)) details.open = false;
    });
  }

  // Live: the server sends the content again when the node has changed. Items that are the same stay
  // in place, with what is selected, open or focused in them.
  const sources = new WeakMap();
  function remember(parent) {
    for (const child of parent.children) {
      if ("list" in child.dataset) remember(child);
      else sources.set(child, child.outerHTML);
    }
  }

  // become makes the children of an element those of another one. Lists are compared item by item.
  function become(parent, next) {
    const same = new Map(); // by next child
    for (const child of next.children) {
      const old = child.id ? [...parent.children].find((c) => c.id === child.id) : [...parent.children].find((c) => sources.get(c) === sources.get(child));
      if (old && ("list" in child.dataset || sources.get(old) === sources.get(child))) same.set(child, old);
    }
    const kept = new Set(same.values());
    const gone = new Map();
    for (const old of [...parent.children]) {
      if (!kept.has(old)) {
        gone.set(old.id, old);
        old.remove();
      }
    }
    let at = parent.firstElementChild;
    for (const child of [...next.children]) {
      const old = same.get(child);
      if (old && old === at) at = at.nextElementSibling;
      else parent.insertBefore(old ?? child, at);
      if (!old) changed(child, gone.get(child.id));
      else if ("list" in child.dataset) become(old, child);
    }
  }

  function changed(item, old) {
    if ("item" in item.dataset) item.classList.add("changed");
    if (old && "open" in item) item.open = old.open || "problem" in item.dataset && !("problem" in old.dataset);
    for (const open of old?.querySelectorAll("details[open]") ?? []) {
      const details = byId(open.id);
      if (details) details.open = true;
    }
  }

  function update(html) {
    const policy = window.trustedTypes
      ? (update.policy ??= trustedTypes.createPolicy("content", { createHTML: (text) => text }))
      : { createHTML: (text) => text };
    const next = new DOMParser().parseFromString(policy.createHTML(html), "text/html").body;
    remember(next);
    const content = byId("content");
    const focused = content.contains(document.activeElement) ? document.activeElement : null;
    const copies = focused?.dataset.copy;
    become(content, next); // the browser keeps what is visible in its place (scroll anchoring)
    sort();
    filter();
    if (focused && !focused.isConnected) { // its item was replaced
      const again = copies ? [...content.querySelectorAll("[data-copy]")].find((b) => b.dataset.copy === copies) : focused.id && byId(focused.id);
      (again || content).focus({ preventScroll: true });
    }
  }

  function live() {
    const status = byId("connection");
    status.hidden = false;
    const say = (text, bad) => {
      if (status.textContent !== text) status.textContent = text;
      status.classList.toggle("bad", bad);
    };
    const stamp = byId("stamp");
    let silence;
    const alive = (event) => {
      clearTimeout(silence);
      silence = setTimeout(lost, 30000);
      return event.data;
    };
    const lost = () => say("Connection lost. This is the last known state; trying again.", true);
    say("Connecting", false);
    const events = new EventSource(root.dataset.events);
    events.addEventListener("node", (event) => update(alive(event)));
    events.addEventListener("seen", (event) => {
      stamp.textContent = alive(event);
      stamp.dateTime = event.data.replace(" UTC", "Z").replace(" ", "T");
      say("Live", false);
    });
    events.addEventListener("failure", (event) => say("CSI Proxy does not answer: " + alive(event) + ". This is the last known state.", true));
    events.addEventListener("error", () => {
      clearTimeout(silence);
      if (events.readyState === EventSource.CLOSED) {
        say("No updates: open the address that csi-proxyctl web printed last. If it is this one, close other pages of it and reload.", true);
      } else {
        lost();
      }
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (root.dataset.events) remember(byId("content"));
    theme();
    search();
    print();
    document.addEventListener("click", (event) => {
      const button = event.target.closest("[data-copy]");
      if (button) copy(button);
      const head = event.target.closest("[data-sort]");
      if (head) {
        const column = Number(head.dataset.sort);
        order = { column, direction: order?.column === column ? -order.direction : 1 };
        sort();
      }
    });
    if (root.dataset.events) live();
  });
})();
