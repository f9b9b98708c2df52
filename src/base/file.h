/* Files: mapped read-only, read whole under a cap, written whole or not at all. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include "base/buf.h"

typedef struct pl_map {
    const unsigned char *data; /* NULL for an empty file */
    size_t size;
} pl_map;

/* Map a regular file read-only and shared. The mapping outlives the descriptor. PL_ENOTFOUND; PL_EIO, also for a pipe,
 * a device or a folder, none of which is waited for. */
pl_status pl_map_open(pl_map *map, const char *path, pl_error *err);
void pl_map_close(pl_map *map);

/* Append the whole of a regular file to buf, whose cap bounds it. PL_ENOTFOUND, PL_EIO (also for a pipe, a device or a
 * folder), PL_ELIMIT. "-" reads standard input. */
pl_status pl_file_read(pl_buf *buf, const char *path, pl_error *err);

/* The same for what a user feeds in: from pipes and devices too, waiting for them as they need. */
pl_status pl_input_read(pl_buf *buf, const char *path, pl_error *err);
/* How messages call it: "standard input" for "-", else the path itself. */
const char *pl_input_name(const char *path);

/* A file in the making: written beside its final name, moved there by commit. Links are followed; a device or a pipe
 * ("/dev/stdout") is written straight, and so is standard output, for the path "-". */
typedef struct pl_file_out {
    int fd;
    char *path; /* final name */
    char *temp; /* name while it is written; NULL for a device, a pipe or standard output */
    int place;  /* where pl_file_unlink_temps finds that name; -1: nowhere */
} pl_file_out;

pl_status pl_file_create(pl_file_out *out, const char *path, pl_error *err);
pl_status pl_file_write(pl_file_out *out, const void *bytes, size_t n, pl_error *err);
/* The same at a place of the file (not of a device or a pipe), for parts that do not come in order. */
pl_status pl_file_write_at(pl_file_out *out, uint64_t offset, const void *bytes, size_t n, pl_error *err);
/* Flush to the disk and rename. On failure the temporary file is removed and the old file stands. */
pl_status pl_file_commit(pl_file_out *out, pl_error *err);
/* The same for two files that belong together: both get their names, or neither is there. */
pl_status pl_file_commit_pair(pl_file_out *one, pl_file_out *other, pl_error *err);
/* Give it up: the temporary file is removed. Safe after commit and on a zeroed struct with fd -1. */
void pl_file_abandon(pl_file_out *out);

/* Remove the temporary files of all outputs under way. For the handler of a signal that ends the program: it calls
 * nothing but unlink. Up to 8 outputs at a time are known to it. */
void pl_file_unlink_temps(void);

/* Create, write, commit. */
pl_status pl_file_put(const char *path, const void *bytes, size_t n, pl_error *err);

/* dir + "/" + name in fresh memory (free with free); NULL without memory. */
char *pl_path_join(const char *dir, const char *name);

#endif
