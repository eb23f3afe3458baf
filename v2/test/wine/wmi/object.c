/*
 * An object is a number of an object in the node server, and Invoke a message to it. What
 * members it has and what they do is known there alone.
 */
#include "object.h"

#include "wire.h"

struct object {
    IDispatch dispatch;
    LONG references;
    UINT64 number;
};

/*
 * Names that were asked for. A DISPID is a place in here, for all objects alike. There are
 * as many as WMI's objects have members, so the list is never full in practice.
 */
static struct {
    CRITICAL_SECTION lock;
    WCHAR *texts[256];
    DISPID count;
} names;

void object_init(void) { InitializeCriticalSection(&names.lock); }

static DISPID id_of_name(const WCHAR *name)
{
    DISPID id;

    EnterCriticalSection(&names.lock);
    for (id = 0; id < names.count; id++)
        if (!wcscmp(names.texts[id], name))
            break;
    if (id == names.count) {
        if (id < (DISPID)ARRAYSIZE(names.texts) && (names.texts[id] = SysAllocString(name)))
            names.count++;
        else
            id = DISPID_UNKNOWN;
    }
    LeaveCriticalSection(&names.lock);
    return id;
}

static const WCHAR *name_of_id(DISPID id)
{
    const WCHAR *name;

    EnterCriticalSection(&names.lock);
    name = id >= 0 && id < names.count ? names.texts[id] : NULL; /* it stays */
    LeaveCriticalSection(&names.lock);
    return name;
}

static struct object *object_of(IDispatch *dispatch) { return CONTAINING_RECORD(dispatch, struct object, dispatch); }

static HRESULT WINAPI query_interface(IDispatch *dispatch, REFIID iid, void **out)
{
    if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IDispatch)) {
        *out = NULL;
        return E_NOINTERFACE;
    }
    *out = dispatch;
    IDispatch_AddRef(dispatch);
    return S_OK;
}

static ULONG WINAPI add_ref(IDispatch *dispatch) { return InterlockedIncrement(&object_of(dispatch)->references); }

static ULONG WINAPI release(IDispatch *dispatch)
{
    struct object *object = object_of(dispatch);
    LONG references = InterlockedDecrement(&object->references);
    BYTE buffer[64];
    struct message m = {buffer, sizeof(buffer), 0, FALSE};

    if (!references) {
        put_u16(&m, OP_RELEASE);
        put_u64(&m, object->number);
        exchange(&m);
        CoTaskMemFree(object);
    }
    return references;
}

static HRESULT WINAPI get_type_info_count(IDispatch *dispatch, UINT *count)
{
    *count = 0;
    return S_OK;
}

static HRESULT WINAPI get_type_info(IDispatch *dispatch, UINT index, LCID locale, ITypeInfo **info) { return E_NOTIMPL; }

static HRESULT WINAPI get_ids_of_names(IDispatch *dispatch, REFIID iid, LPOLESTR *texts, UINT count, LCID locale, DISPID *ids)
{
    UINT i;

    for (i = 0; i < count; i++) /* those after the first are parameters */
        ids[i] = i ? DISPID_UNKNOWN : id_of_name(texts[0]);
    return count > 1 || ids[0] == DISPID_UNKNOWN ? DISP_E_UNKNOWNNAME : S_OK;
}

static HRESULT read_answer(struct message *m, VARIANT *result, EXCEPINFO *exception)
{
    HRESULT hr = get_u32(m);
    SCODE scode = get_u32(m);
    BSTR text = get_text(m);
    VARIANT value;

    if (hr == DISP_E_EXCEPTION && exception) {
        memset(exception, 0, sizeof(*exception));
        exception->scode = scode;
        exception->bstrSource = SysAllocString(L"SWbemObject");
        exception->bstrDescription = text;
        text = NULL;
    }
    SysFreeString(text);
    get_value(m, &value);
    if (m->failed)
        return E_UNEXPECTED;
    if (result)
        *result = value;
    else
        VariantClear(&value);
    return hr;
}

static HRESULT WINAPI invoke(IDispatch *dispatch, DISPID id, REFIID iid, LCID locale, WORD flags, DISPPARAMS *parameters,
                             VARIANT *result, EXCEPINFO *exception, UINT *wrong)
{
    const WCHAR *name = name_of_id(id);
    struct message m = {NULL, MESSAGE_SIZE, 0, FALSE};
    HRESULT hr = S_OK;
    UINT i;

    if (!name)
        return DISP_E_MEMBERNOTFOUND;
    if (!(m.data = CoTaskMemAlloc(m.size)))
        return E_OUTOFMEMORY;
    put_u16(&m, OP_INVOKE);
    put_u64(&m, object_of(dispatch)->number);
    put_u16(&m, flags);
    put_text(&m, name, wcslen(name));
    put_u16(&m, parameters->cArgs);
    for (i = parameters->cArgs; i-- > 0 && SUCCEEDED(hr);) /* the last one comes first */
        hr = put_value(&m, &parameters->rgvarg[i]);
    if (SUCCEEDED(hr) && SUCCEEDED(hr = exchange(&m)))
        hr = read_answer(&m, result, exception);
    CoTaskMemFree(m.data);
    return hr;
}

static IDispatchVtbl vtable = {
    query_interface, add_ref, release, get_type_info_count, get_type_info, get_ids_of_names, invoke,
};

IDispatch *object_create(UINT64 number)
{
    struct object *object = CoTaskMemAlloc(sizeof(*object));

    if (!object)
        return NULL;
    object->dispatch.lpVtbl = &vtable;
    object->references = 1;
    object->number = number;
    return &object->dispatch;
}

UINT64 object_number(IDispatch *dispatch)
{
    return dispatch && dispatch->lpVtbl == &vtable ? object_of(dispatch)->number : 0;
}
