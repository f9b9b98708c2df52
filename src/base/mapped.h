/* Which file lies behind an address: the table of what is mapped, for the handler of SIGBUS. */
#ifndef PL_BASE_MAPPED_H
#define PL_BASE_MAPPED_H

#include <stddef.h>

/* The file whose mapping holds the address, and the mapping's bytes in *size; NULL when no known one does. Calls
 * nothing that a signal handler may not. The name stands as long as the mapping. */
const char *pl_mapped_name(const void *address, size_t *size);

/* For pl_map_open and pl_map_close, any thread. Past 1024 mappings, and without memory, one is not noted: then the
 * handler cannot name it. */
void pl__mapped_add(const void *data, size_t size, const char *path);
void pl__mapped_remove(const void *data);

#endif
