package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// plot is a diagram with logarithmic axes: equal distances are equal ratios, and what grows
// linearly is a line of 45 degrees.
type plot struct {
	title, x, y string
	series      []series
}

type series struct {
	name   string
	points [][2]float64 // greater than 0
}

// plots are the diagrams of the page by the names of their files.
func plots(results []result) map[string]plot {
	callers := plot{title: "PathExists on one connection", x: "callers", y: "calls per second"}
	for _, s := range []struct{ name, unit string }{{"raw socket", "raw/s"}, {"gRPC echo", "echo/s"}, {"csi-proxy", "server/s"}} {
		line := series{name: s.name}
		for _, r := range of(results, "RPC", "call", "PathExists", "connections", "shared") {
			line.points = append(line.points, [2]float64{float64(r.number("callers")), r.values[s.unit]})
		}
		callers.series = append(callers.series, line)
	}
	growing := plot{title: "Growth", x: "how many there are", y: "microseconds per call"}
	for _, g := range grown(results) {
		line := series{name: g.things + ": " + g.call}
		for _, r := range of(results, "Growth", "call", g.call) {
			if count := r.number(g.things); count > 0 {
				line.points = append(line.points, [2]float64{float64(count), r.values["ns/op"] / 1e3})
			}
		}
		growing.series = append(growing.series, line)
	}
	return map[string]plot{"performance-callers.svg": callers, "performance-growth.svg": growing, "performance-life.svg": lifePlot(results)}
}

// Where things are in the picture.
const (
	width, height            = 860, 440
	left, right, top, bottom = 70, 330, 40, 60
)

var colours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#000000"}

// axis maps values to places in the picture.
type axis struct {
	low, high   float64 // powers of ten
	first, last float64 // where those are
}

func newAxis(values []float64, first, last float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), first: first, last: last}
	for _, value := range values {
		a.low, a.high = min(a.low, math.Floor(math.Log10(value))), max(a.high, math.Ceil(math.Log10(value)))
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

func (a axis) at(value float64) float64 {
	return a.first + (math.Log10(value)-a.low)/(a.high-a.low)*(a.last-a.first)
}

// ticks are the powers of ten.
func (a axis) ticks() []float64 {
	var ticks []float64
	for power := a.low; power <= a.high; power++ {
		ticks = append(ticks, math.Pow(10, power))
	}
	return ticks
}

// svg draws the plot. Without points there is only its frame.
func (p plot) svg() string {
	var xs, ys []float64
	for _, s := range p.series {
		for _, point := range s.points {
			xs, ys = append(xs, point[0]), append(ys, point[1])
		}
	}
	if len(xs) == 0 {
		xs, ys = []float64{1}, []float64{1}
	}
	x, y := newAxis(xs, left, width-right), newAxis(ys, height-bottom, top)

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text := func(x, y float64, anchor, more, content string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, more, html.EscapeString(content))
	}
	line := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", x1, y1, x2, y2)
	}
	for _, tick := range x.ticks() {
		line(x.at(tick), y.first, x.at(tick), y.last)
		text(x.at(tick), y.first+18, "middle", "", tickLabel(tick))
	}
	for _, tick := range y.ticks() {
		line(x.first, y.at(tick), x.last, y.at(tick))
		text(x.first-8, y.at(tick)+4, "end", "", tickLabel(tick))
	}
	text((x.first+x.last)/2, top-16, "middle", ` font-weight="bold"`, p.title)
	text((x.first+x.last)/2, height-14, "middle", "", p.x)
	middle := (y.first + y.last) / 2
	text(16, middle, "middle", fmt.Sprintf(` transform="rotate(-90 16 %.1f)"`, middle), p.y)
	for i, s := range p.series {
		colour, dashes := colours[i%len(colours)], ""
		if i >= len(colours) {
			dashes = ` stroke-dasharray="5 3"`
		}
		var points []string
		for _, point := range s.points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(point[0]), y.at(point[1])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(point[0]), y.at(point[1]), colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(points, " "), colour, dashes)
		at := float64(top + 20*i)
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2"%s/>`+"\n", x.last+16, at, x.last+40, at, colour, dashes)
		text(x.last+46, at+4, "start", "", s.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// tickLabel writes a power of ten.
func tickLabel(value float64) string {
	if value < 1 {
		return fmt.Sprintf("%g", value)
	}
	return thousands(int(math.Round(value)))
}
