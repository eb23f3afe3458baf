/*
 * Requests of clients meet requests of the server here. Both are kept pending: one of the
 * server until there is one of a client to hand over, one of a client until the server has
 * answered it.
 */
#include "winsim.h"

static LIST_ENTRY waiting; /* of clients, not yet handed over */
static LIST_ENTRY asked;   /* of clients, handed over */
static LIST_ENTRY servers; /* of the server */
static UINT64 last_id;
static int handles; /* that the server has open */

void queue_init(void)
{
    InitializeListHead(&waiting);
    InitializeListHead(&asked);
    InitializeListHead(&servers);
}

static IRP *irp_of(LIST_ENTRY *entry)
{
    return CONTAINING_RECORD(entry, IRP, Tail.Overlay.ListEntry);
}

static UINT64 *id_of(IRP *irp)
{
    return (UINT64 *)&irp->Tail.Overlay.DriverContext[0];
}

/* Ends a request that was pending. */
static void finish(IRP *irp, NTSTATUS status, ULONG_PTR information)
{
    IoSetCancelRoutine(irp, NULL);
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = information;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
}

/* Who asked is not there any more. An answer that still comes finds nothing. */
static void WINAPI cancel(DEVICE_OBJECT *object, IRP *irp)
{
    IoReleaseCancelSpinLock(irp->CancelIrql);
    finish(irp, STATUS_CANCELLED, 0);
}

static void keep(LIST_ENTRY *list, IRP *irp)
{
    IoMarkIrpPending(irp);
    InsertTailList(list, &irp->Tail.Overlay.ListEntry);
    IoSetCancelRoutine(irp, cancel);
}

/* Says what a client asks. Returns the length of its input, which data is. */
static ULONG describe(struct request *request, IRP *irp, const void **data)
{
    IO_STACK_LOCATION *stack = IoGetCurrentIrpStackLocation(irp);

    memset(request, 0, sizeof(*request));
    request->id = *id_of(irp);
    request->device = device_of(stack->DeviceObject)->number;
    request->function = stack->MajorFunction;
    *data = irp->AssociatedIrp.SystemBuffer;
    switch (stack->MajorFunction) {
    case IRP_MJ_DEVICE_CONTROL:
        request->code = stack->Parameters.DeviceIoControl.IoControlCode;
        request->room = stack->Parameters.DeviceIoControl.OutputBufferLength;
        return stack->Parameters.DeviceIoControl.InputBufferLength;
    case IRP_MJ_READ:
        request->room = stack->Parameters.Read.Length;
        request->offset = stack->Parameters.Read.ByteOffset.QuadPart;
        return 0;
    case IRP_MJ_WRITE:
        request->offset = stack->Parameters.Write.ByteOffset.QuadPart;
        return stack->Parameters.Write.Length;
    case IRP_MJ_QUERY_VOLUME_INFORMATION:
        request->code = stack->Parameters.QueryVolume.FsInformationClass;
        request->room = stack->Parameters.QueryVolume.Length;
        return 0;
    default:
        return 0;
    }
}

/* Hands requests over while both sides wait. */
static void meet(void)
{
    while (!IsListEmpty(&waiting) && !IsListEmpty(&servers)) {
        IRP *client = irp_of(waiting.Flink), *server = irp_of(servers.Flink);
        ULONG room = IoGetCurrentIrpStackLocation(server)->Parameters.DeviceIoControl.OutputBufferLength;
        char *out = server->AssociatedIrp.SystemBuffer;
        struct request request;
        const void *data;
        ULONG length = describe(&request, client, &data);

        if (length > room - sizeof(request)) {
            finish(client, STATUS_INSUFFICIENT_RESOURCES, 0);
            continue;
        }
        memcpy(out, &request, sizeof(request));
        memcpy(out + sizeof(request), data, length);
        RemoveEntryList(&client->Tail.Overlay.ListEntry);
        InsertTailList(&asked, &client->Tail.Overlay.ListEntry);
        finish(server, STATUS_SUCCESS, sizeof(request) + length);
    }
}

NTSTATUS queue_client(IRP *irp)
{
    if (!handles)
        return complete(irp, STATUS_DEVICE_NOT_CONNECTED);
    *id_of(irp) = ++last_id;
    keep(&waiting, irp);
    meet();
    return STATUS_PENDING;
}

NTSTATUS queue_server(IRP *irp)
{
    if (IoGetCurrentIrpStackLocation(irp)->Parameters.DeviceIoControl.OutputBufferLength < sizeof(struct request))
        return complete(irp, STATUS_BUFFER_TOO_SMALL);
    keep(&servers, irp);
    meet();
    return STATUS_PENDING;
}

/* Finishes the request that the server has answered. */
NTSTATUS queue_answer(const char *in, ULONG length)
{
    struct reply reply;
    struct request request;
    const void *data;
    LIST_ENTRY *entry;

    if (length < sizeof(reply))
        return STATUS_INVALID_PARAMETER;
    memcpy(&reply, in, sizeof(reply));
    in += sizeof(reply);
    length -= sizeof(reply);
    for (entry = asked.Flink; entry != &asked; entry = entry->Flink) {
        IRP *irp = irp_of(entry);
        if (*id_of(irp) != reply.id)
            continue;
        describe(&request, irp, &data);
        if (length > request.room)
            return STATUS_INVALID_PARAMETER;
        memcpy(irp->AssociatedIrp.SystemBuffer, in, length);
        finish(irp, reply.status, length);
        break;
    }
    return STATUS_SUCCESS; /* also if its client has left */
}

static void fail_all(LIST_ENTRY *list)
{
    while (!IsListEmpty(list))
        finish(irp_of(list->Flink), STATUS_DEVICE_NOT_CONNECTED, 0);
}

void queue_open(void)
{
    handles++;
}

/*
 * The server closes its handles when it ends, all of them. It is unknown which requests
 * it was working on, so the first one already fails them all.
 */
void queue_close(void)
{
    handles--;
    fail_all(&asked);
    fail_all(&waiting);
}

void queue_end(void)
{
    fail_all(&asked);
    fail_all(&waiting);
    fail_all(&servers);
}
