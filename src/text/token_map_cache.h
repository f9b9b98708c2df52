/* A token map as a file. The format is drawn in token_map_cache.c. */
#ifndef PL_TEXT_TOKEN_MAP_CACHE_H
#define PL_TEXT_TOKEN_MAP_CACHE_H

#include "text/token_map.h"

/* Append the file's bytes to out. The errors of pl_buf_add. */
pl_status pl__token_map_write(const pl_token_map *map, const unsigned char sha256[32], pl_buf *out, pl_error *err);

/* Read a file's bytes, checking all of them. PL_EFORMAT when they are not a whole map of `ids` ids of the tokenizer
 * with this SHA-256, made by this code with this Unicode data. PL_ENOMEM. *out is zeroed on failure. */
pl_status pl__token_map_read(pl_token_map *out, const unsigned char *bytes, size_t len, const unsigned char sha256[32],
                             size_t ids, pl_error *err);

/* The folder for maps by the rule of pl_token_map_open, in fresh memory (free with free); NULL when there is none. */
char *pl__token_map_dir(const char *cache_dir);

#endif
