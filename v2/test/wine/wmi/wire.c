#include "wire.h"

#include "object.h"

static void put(struct message *m, const void *data, DWORD length)
{
    if (m->failed || length > m->size - m->at) {
        m->failed = TRUE;
        return;
    }
    memcpy(m->data + m->at, data, length);
    m->at += length;
}

void put_u16(struct message *m, UINT16 value) { put(m, &value, sizeof(value)); }
static void put_u32(struct message *m, UINT32 value) { put(m, &value, sizeof(value)); }
void put_u64(struct message *m, UINT64 value) { put(m, &value, sizeof(value)); }

void put_text(struct message *m, const WCHAR *text, DWORD length)
{
    put_u32(m, length * sizeof(WCHAR));
    put(m, text, length * sizeof(WCHAR));
}

/* Writes a value. Numbers of all kinds travel as VT_I4, as WMI's scripting interface has
 * them; what cannot become one, or a text, is refused. */
HRESULT put_value(struct message *m, VARIANT *value)
{
    VARIANT copy;
    HRESULT hr;
    UINT64 object;

    VariantInit(&copy);
    if (FAILED(hr = VariantCopyInd(&copy, value)))
        return hr;
    switch (V_VT(&copy)) {
    case VT_EMPTY:
    case VT_NULL:
    case VT_ERROR:
        put_u16(m, V_VT(&copy));
        break;
    case VT_BOOL:
        put_u16(m, VT_BOOL);
        put_u16(m, V_BOOL(&copy));
        break;
    case VT_BSTR:
        put_u16(m, VT_BSTR);
        put_text(m, V_BSTR(&copy), SysStringLen(V_BSTR(&copy)));
        break;
    case VT_DISPATCH:
        if (!(object = object_number(V_DISPATCH(&copy)))) {
            hr = DISP_E_TYPEMISMATCH;
            break;
        }
        put_u16(m, VT_DISPATCH);
        put_u64(m, object);
        break;
    default:
        if (FAILED(hr = VariantChangeType(&copy, &copy, 0, VT_I4)))
            break;
        put_u16(m, VT_I4);
        put_u32(m, V_I4(&copy));
    }
    VariantClear(&copy);
    return hr;
}

static void get(struct message *m, void *data, DWORD length)
{
    if (m->failed || length > m->size - m->at) {
        m->failed = TRUE;
        memset(data, 0, length);
        return;
    }
    memcpy(data, m->data + m->at, length);
    m->at += length;
}

static UINT16 get_u16(struct message *m)
{
    UINT16 value;
    get(m, &value, sizeof(value));
    return value;
}

UINT32 get_u32(struct message *m)
{
    UINT32 value;
    get(m, &value, sizeof(value));
    return value;
}

static UINT64 get_u64(struct message *m)
{
    UINT64 value;
    get(m, &value, sizeof(value));
    return value;
}

BSTR get_text(struct message *m)
{
    DWORD length = get_u32(m);
    BSTR text;

    if (m->failed || length > m->size - m->at) {
        m->failed = TRUE;
        return NULL;
    }
    text = SysAllocStringLen((WCHAR *)(m->data + m->at), length / sizeof(WCHAR));
    m->at += length;
    return text;
}

static SAFEARRAY *get_array(struct message *m)
{
    DWORD count = get_u32(m), i;
    SAFEARRAY *array;
    VARIANT *elements;

    if (m->failed || count > m->size - m->at || !(array = SafeArrayCreateVector(VT_VARIANT, 0, count))) {
        m->failed = TRUE;
        return NULL;
    }
    if (FAILED(SafeArrayAccessData(array, (void **)&elements))) {
        SafeArrayDestroy(array);
        m->failed = TRUE;
        return NULL;
    }
    for (i = 0; i < count; i++)
        get_value(m, &elements[i]);
    SafeArrayUnaccessData(array);
    return array;
}

void get_value(struct message *m, VARIANT *value)
{
    VariantInit(value);
    switch (V_VT(value) = get_u16(m)) {
    case VT_BOOL:
        V_BOOL(value) = get_u16(m);
        break;
    case VT_I4:
        V_I4(value) = get_u32(m);
        break;
    case VT_BSTR:
        V_BSTR(value) = get_text(m);
        break;
    case VT_DISPATCH:
        V_DISPATCH(value) = object_create(get_u64(m));
        break;
    case VT_ARRAY | VT_VARIANT:
        if (!(V_ARRAY(value) = get_array(m)))
            V_VT(value) = VT_EMPTY;
        break;
    }
}

HRESULT exchange(struct message *m)
{
    HANDLE device;
    DWORD length = 0;
    BOOL ok;

    if (m->failed)
        return E_OUTOFMEMORY;
    device = CreateFileW(WMI_DEVICE, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    if (device == INVALID_HANDLE_VALUE)
        return HRESULT_FROM_WIN32(GetLastError());
    ok = DeviceIoControl(device, IOCTL_WINSIM_WMI, m->data, m->at, m->data, m->size, &length, NULL);
    CloseHandle(device);
    if (!ok)
        return HRESULT_FROM_WIN32(GetLastError());
    m->size = length;
    m->at = 0;
    return S_OK;
}
