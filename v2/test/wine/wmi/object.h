#ifndef OBJECT_H
#define OBJECT_H

#define COBJMACROS
#include <windows.h>
#include <oleauto.h>

/* To be called once, before anything else. */
void object_init(void);

/* Makes an object that stands for one of the node server; NULL if there is no memory. */
IDispatch *object_create(UINT64 number);

/* The number of the node server's object, or 0 if it is not ours. */
UINT64 object_number(IDispatch *dispatch);

#endif
