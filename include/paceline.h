/* Paceline: the one public header.
 *
 * A program that embeds the engine includes this file and links libpaceline; nothing under src/ is public.
 * Names: pl_x is public, pl__x is shared between modules of the library, everything else is static. */
#ifndef PACELINE_H
#define PACELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to. 0 is success, every failure is negative. */
typedef enum pl_status {
    PL_OK = 0,
    PL_EINVAL = -1,    /* a caller's argument, setting or request field has a bad value */
    PL_EFORMAT = -2,   /* bytes from outside (a file, a request body) break their format */
    PL_EIO = -3,       /* the operating system refused a read, write, map, bind, ... */
    PL_ENOMEM = -4,    /* memory could not be had */
    PL_ELIMIT = -5,    /* a named cap was reached */
    PL_ENOTFOUND = -6, /* a file, tensor, request or model that is not there */
    PL_ECANCELED = -7, /* the caller gave the work up */
    PL_EBUSY = -8,     /* not now: queue full, still loading, shutting down */
    PL_EFAULT = -9     /* a contradiction inside the engine: a fault of ours or of the device */
} pl_status;

/* The error object. The function where a failure starts fills it once; every caller above passes it on untouched. */
typedef struct pl_error {
    pl_status status;
    char message[512]; /* one sentence: what, where, what was expected, what was found; UTF-8, no newline */
    char param[128];   /* request field, setting, tensor or flag at fault; "" when there is none */
    int64_t offset;    /* byte offset in the input at fault, -1 when there is none */
} pl_error;

/* A short lower-case name for a status, "ok" or "bad-value" for example. Static storage, never NULL. */
const char *pl_status_name(pl_status status);

#ifdef __cplusplus
}
#endif
#endif
