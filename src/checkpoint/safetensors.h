/* One safetensors file: reading and checking its header.
 *
 *   8 bytes   N, little-endian
 *   N bytes   JSON: {"__metadata__": {TEXT: TEXT, ...},
 *                    NAME: {"dtype": D, "shape": [...], "data_offsets": [B, E]}, ...}, white space allowed at the end
 *   the rest  data; tensor NAME is the bytes B..E-1 of it
 *
 * As the format's own reader demands, the tensors cover the data without overlap and without a hole, and E - B is the
 * shape's product times the type's size. */
#ifndef PL_CHECKPOINT_SAFETENSORS_H
#define PL_CHECKPOINT_SAFETENSORS_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"

enum { PL_MAX_HEADER_BYTES = 100000000 }; /* the format's own cap */

typedef struct pl_st_tensor {
    int type; /* a pl_dtype, or a later number for the types that no checkpoint of ours reads */
    int rank;
    int64_t dim[2];      /* the first two */
    uint64_t begin, end; /* in the data, after the header */
} pl_st_tensor;

typedef struct pl_st_header {
    pl__names names;      /* in file order, without __metadata__ */
    pl_st_tensor *tensor; /* names.count of them */
    size_t room;          /* private */
    size_t data;          /* offset of the data in the file */
} pl_st_header;

/* Parse and check the header of a file of `size` bytes mapped at `file`. `where` names the file in messages. PL_EFORMAT
 * (tensor in param where there is one), PL_ELIMIT, PL_ENOMEM. On failure the header is already freed. */
pl_status pl_safetensors_parse(pl_st_header *header, const unsigned char *file, size_t size, const char *where,
                               pl_error *err);
void pl_safetensors_free(pl_st_header *header);

/* The name of a type as headers spell it. Static storage. */
const char *pl_st_type_name(int type);

/* "[129280,5120]" for messages; a rank past 2 shows as "[129280,5120,...]". Returns out. */
const char *pl_shape_text(int rank, const int64_t dim[2], char out[64]);

#endif
