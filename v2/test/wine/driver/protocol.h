/*
 * How the driver and the node server talk, through control codes of \\.\WinsimControl.
 * The Go side of it is package exchange, which must have the same layout.
 *
 * All numbers are little-endian. Structures have no padding.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#define CONTROL_DEVICE L"\\Device\\WinsimControl"
#define CONTROL_LINK L"\\DosDevices\\WinsimControl"

/*
 * Makes a device. In: struct add, and after it texts in UTF-16, each with a NUL at its
 * end: the name of the device, such as \Device\Harddisk7\DR7, then links to it, such as
 * \DosDevices\PhysicalDrive7.
 */
#define IOCTL_WINSIM_ADD CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_ANY_ACCESS)

/*
 * Answers a request, if there is anything in the input buffer, and waits for the next. In:
 * nothing, or struct reply and the output of the request. Out: struct request and the
 * input of the request. A server that can work on n requests at once has n of these
 * waiting.
 */
#define IOCTL_WINSIM_EXCHANGE CTL_CODE(FILE_DEVICE_UNKNOWN, 0x801, METHOD_BUFFERED, FILE_ANY_ACCESS)

struct add {
    UINT32 device; /* the server's own number for it */
    UINT32 type;   /* FILE_DEVICE_... */
};

struct request {
    UINT64 id;
    UINT32 device;
    UINT32 function; /* IRP_MJ_... */
    UINT32 code;     /* of IRP_MJ_DEVICE_CONTROL; the class of IRP_MJ_QUERY_VOLUME_INFORMATION */
    UINT32 room;     /* for the output */
    UINT64 offset;   /* of IRP_MJ_READ and IRP_MJ_WRITE */
};

struct reply {
    UINT64 id;
    UINT32 status; /* NTSTATUS */
    UINT32 reserved;
};

#endif
