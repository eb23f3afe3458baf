/*
 * A driver without a device: whatever is asked of the disks that it shows is handed to a
 * program in user mode, the node server, which answers from an emulated node.
 *
 * It is for Wine, which loads drivers into an ordinary process and calls their dispatch
 * functions from one thread of it. That is why there are no locks here. Do not load it
 * into Windows.
 */
#include "winsim.h"

static DRIVER_OBJECT *driver;
static DEVICE_OBJECT *control;
static DEVICE_OBJECT *devices; /* the others, linked by struct device */

/* Every directory on the way to a device must exist before the device does. */
static NTSTATUS create_directories(const WCHAR *name)
{
    const WCHAR *end = name;
    NTSTATUS status = STATUS_SUCCESS;

    while (NT_SUCCESS(status) && (end = wcschr(end + 1, '\\'))) {
        UNICODE_STRING path;
        OBJECT_ATTRIBUTES attributes;
        HANDLE directory;

        path.Buffer = (WCHAR *)name;
        path.Length = path.MaximumLength = (end - name) * sizeof(WCHAR);
        InitializeObjectAttributes(&attributes, &path, OBJ_OPENIF | OBJ_CASE_INSENSITIVE, NULL, NULL);
        status = ZwCreateDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, &attributes);
        /* It stays open, and thus in existence, as long as the driver is loaded. */
    }
    return status;
}

/* Makes a device, or finds the one that an earlier server has made. */
static NTSTATUS create_device(const WCHAR *name, UINT32 type, DEVICE_OBJECT **object)
{
    UNICODE_STRING string;
    NTSTATUS status;

    for (*object = devices; *object; *object = device_of(*object)->next)
        if (!wcscmp(device_of(*object)->name, name))
            return STATUS_SUCCESS;
    if (wcslen(name) >= NAME_LENGTH)
        return STATUS_INVALID_PARAMETER;
    if (!NT_SUCCESS(status = create_directories(name)))
        return status;
    RtlInitUnicodeString(&string, name);
    status = IoCreateDevice(driver, sizeof(struct device), &string, type, 0, FALSE, object);
    if (!NT_SUCCESS(status))
        return status;
    (*object)->Flags |= DO_BUFFERED_IO;
    (*object)->Flags &= ~DO_DEVICE_INITIALIZING;
    wcscpy(device_of(*object)->name, name);
    device_of(*object)->next = devices;
    devices = *object;
    return STATUS_SUCCESS;
}

/* Makes a device, and links to it; text is its name and theirs, up to end. */
static NTSTATUS add_device(const struct add *add, const WCHAR *text, const WCHAR *end)
{
    UNICODE_STRING name, link;
    DEVICE_OBJECT *object;
    NTSTATUS status;

    if (text >= end || end[-1] != 0)
        return STATUS_INVALID_PARAMETER;
    if (!NT_SUCCESS(status = create_device(text, add->type, &object)))
        return status;
    device_of(object)->number = add->device;
    RtlInitUnicodeString(&name, text);
    for (text += wcslen(text) + 1; text < end; text += wcslen(text) + 1) {
        RtlInitUnicodeString(&link, text);
        IoDeleteSymbolicLink(&link); /* that of an earlier server, or of Wine */
        if (!NT_SUCCESS(status = IoCreateSymbolicLink(&link, &name)))
            return status;
    }
    return STATUS_SUCCESS;
}

NTSTATUS complete(IRP *irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = 0;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static NTSTATUS control_request(IRP *irp, IO_STACK_LOCATION *stack)
{
    char *in = irp->AssociatedIrp.SystemBuffer;
    ULONG length = stack->Parameters.DeviceIoControl.InputBufferLength;

    switch (stack->Parameters.DeviceIoControl.IoControlCode) {
    case IOCTL_WINSIM_ADD:
        if (length < sizeof(struct add))
            return complete(irp, STATUS_INVALID_PARAMETER);
        return complete(irp, add_device((struct add *)in, (WCHAR *)(in + sizeof(struct add)),
                                        (WCHAR *)(in + (length & ~1))));
    case IOCTL_WINSIM_EXCHANGE:
        if (length) {
            NTSTATUS status = queue_answer(in, length);
            if (!NT_SUCCESS(status))
                return complete(irp, status);
        }
        return queue_server(irp);
    default:
        return complete(irp, STATUS_INVALID_DEVICE_REQUEST);
    }
}

static NTSTATUS WINAPI dispatch(DEVICE_OBJECT *object, IRP *irp)
{
    IO_STACK_LOCATION *stack = IoGetCurrentIrpStackLocation(irp);

    switch (stack->MajorFunction) {
    case IRP_MJ_CREATE:
        if (object == control)
            queue_open();
        return complete(irp, STATUS_SUCCESS);
    case IRP_MJ_CLOSE:
        if (object == control)
            queue_close();
        return complete(irp, STATUS_SUCCESS);
    case IRP_MJ_DEVICE_CONTROL:
        if (object == control)
            return control_request(irp, stack);
        return queue_client(irp);
    case IRP_MJ_READ:
    case IRP_MJ_WRITE:
    case IRP_MJ_FLUSH_BUFFERS:
    case IRP_MJ_QUERY_VOLUME_INFORMATION:
        if (object != control)
            return queue_client(irp);
        /* fall through */
    default:
        return complete(irp, STATUS_INVALID_DEVICE_REQUEST);
    }
}

static void WINAPI unload(DRIVER_OBJECT *object)
{
    UNICODE_STRING link;

    queue_end();
    while (devices) {
        DEVICE_OBJECT *next = device_of(devices)->next;
        IoDeleteDevice(devices);
        devices = next;
    }
    RtlInitUnicodeString(&link, CONTROL_LINK);
    IoDeleteSymbolicLink(&link);
    IoDeleteDevice(control);
}

NTSTATUS WINAPI DriverEntry(DRIVER_OBJECT *object, UNICODE_STRING *registry)
{
    UNICODE_STRING name, link;
    NTSTATUS status;
    int i;

    driver = object;
    queue_init();
    RtlInitUnicodeString(&name, CONTROL_DEVICE);
    RtlInitUnicodeString(&link, CONTROL_LINK);
    if (!NT_SUCCESS(status = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &control)))
        return status;
    control->Flags |= DO_BUFFERED_IO;
    control->Flags &= ~DO_DEVICE_INITIALIZING;
    if (!NT_SUCCESS(status = IoCreateSymbolicLink(&link, &name))) {
        IoDeleteDevice(control);
        return status;
    }
    for (i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        driver->MajorFunction[i] = dispatch;
    driver->DriverUnload = unload;
    return STATUS_SUCCESS;
}
