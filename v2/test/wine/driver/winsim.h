#ifndef WINSIM_H
#define WINSIM_H

#include <ntddk.h>

#include "protocol.h"

#define NAME_LENGTH 128

/* What we keep of a device of the node. */
struct device {
    WCHAR name[NAME_LENGTH];
    UINT32 number; /* the server's */
    DEVICE_OBJECT *next;
};

static inline struct device *device_of(DEVICE_OBJECT *object)
{
    return object->DeviceExtension;
}

/* winsim.c: ends a request that has no output and was not kept pending. */
NTSTATUS complete(IRP *irp, NTSTATUS status);

/* queue.c: requests that wait for the server, and servers that wait for requests. */
void queue_init(void);
void queue_open(void);
void queue_close(void);
void queue_end(void);
NTSTATUS queue_client(IRP *irp);
NTSTATUS queue_server(IRP *irp);
NTSTATUS queue_answer(const char *in, ULONG length);

#endif
