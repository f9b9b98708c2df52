/* SHA-256 (FIPS 180-4), for token_sha and file identities. */
#ifndef PL_BASE_SHA256_H
#define PL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct pl_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} pl_sha256;

void pl_sha256_init(pl_sha256 *sha);
void pl_sha256_add(pl_sha256 *sha, const void *bytes, size_t n);
/* The digest of all bytes added so far; sha itself is unchanged, so that more may be added. */
void pl_sha256_digest(const pl_sha256 *sha, unsigned char out[32]);
/* The same as 64 lower-case hex digits and a NUL. */
void pl_sha256_hex(const pl_sha256 *sha, char out[65]);

#endif
