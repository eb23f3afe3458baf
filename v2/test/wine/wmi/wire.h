/* Building and reading messages. */
#ifndef WIRE_H
#define WIRE_H

#define COBJMACROS
#include <windows.h>
#include <winioctl.h>
#include <oleauto.h>

#include "protocol.h"

#define MESSAGE_SIZE (256 * 1024)

/* A message, and how far it was written or read. failed stays set once there was no room, or
 * nothing more to read. */
struct message {
    BYTE *data;
    DWORD size, at;
    BOOL failed;
};

void put_u16(struct message *m, UINT16 value);
void put_u64(struct message *m, UINT64 value);
void put_text(struct message *m, const WCHAR *text, DWORD length);
HRESULT put_value(struct message *m, VARIANT *value);

UINT32 get_u32(struct message *m);
BSTR get_text(struct message *m);
void get_value(struct message *m, VARIANT *value);

/* Sends a message and replaces it by the answer. */
HRESULT exchange(struct message *m);

#endif
