/*
 * How the COM server and the node server talk, through a control code of \\.\WinsimWMI.
 * The Go side is package wmi.
 *
 * All numbers are little-endian, and there is no padding. A text is a UINT32 with its
 * length in bytes, and UTF-16. A value is a UINT16 with its VARTYPE, and
 *   VT_BOOL      UINT16
 *   VT_I4        UINT32
 *   VT_BSTR      text
 *   VT_DISPATCH  UINT64, the number of an object
 *   VT_ARRAY     UINT32, the number of values, and these; with VT_VARIANT, only in answers
 *   other        nothing: VT_EMPTY, VT_NULL, VT_ERROR for one that was left out
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#define WMI_DEVICE L"\\\\.\\WinsimWMI"
#define IOCTL_WINSIM_WMI CTL_CODE(FILE_DEVICE_UNKNOWN, 0x810, METHOD_BUFFERED, FILE_ANY_ACCESS)

/*
 * In:  UINT16 OP_INVOKE, UINT64 object, UINT16 flags of IDispatch::Invoke, text with the
 *      name of the member, UINT16 number of arguments, values in the order of the
 *      declaration
 *      UINT16 OP_RELEASE, UINT64 object
 * Out: of OP_INVOKE: UINT32 HRESULT, UINT32 scode and text for EXCEPINFO, value
 */
enum { OP_INVOKE = 1, OP_RELEASE = 2 };

/* The object that CoCreateInstance makes, SWbemLocator. */
#define LOCATOR 1

#endif
