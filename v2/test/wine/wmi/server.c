/*
 * An in-process COM server that takes the place of WMI's scripting interface: whatever is
 * asked of its objects is handed to the node server. It is registered under the CLSID of
 * WbemScripting.SWbemLocator, so that programs use it without knowing.
 */
#include "object.h"
#include "wire.h"

static HRESULT WINAPI query_interface(IClassFactory *factory, REFIID iid, void **out)
{
    if (!IsEqualIID(iid, &IID_IUnknown) && !IsEqualIID(iid, &IID_IClassFactory)) {
        *out = NULL;
        return E_NOINTERFACE;
    }
    *out = factory;
    return S_OK;
}

/* There is one factory, for ever. */
static ULONG WINAPI add_ref(IClassFactory *factory) { return 2; }
static ULONG WINAPI release(IClassFactory *factory) { return 1; }
static HRESULT WINAPI lock_server(IClassFactory *factory, BOOL lock) { return S_OK; }

static HRESULT WINAPI create_instance(IClassFactory *factory, IUnknown *outer, REFIID iid, void **out)
{
    IDispatch *locator;
    HRESULT hr;

    *out = NULL;
    if (outer)
        return CLASS_E_NOAGGREGATION;
    if (!(locator = object_create(LOCATOR)))
        return E_OUTOFMEMORY;
    hr = IDispatch_QueryInterface(locator, iid, out);
    IDispatch_Release(locator);
    return hr;
}

static IClassFactoryVtbl vtable = {query_interface, add_ref, release, create_instance, lock_server};
static IClassFactory factory = {&vtable};

HRESULT WINAPI DllGetClassObject(REFCLSID clsid, REFIID iid, void **out) { return query_interface(&factory, iid, out); }

HRESULT WINAPI DllCanUnloadNow(void) { return S_FALSE; }

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved)
{
    if (reason == DLL_PROCESS_ATTACH)
        object_init();
    return TRUE;
}
