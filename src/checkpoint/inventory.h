/* Every tensor that a config implies: name, type, shape, part and shard. Model spec section 2. */
#ifndef PL_CHECKPOINT_INVENTORY_H
#define PL_CHECKPOINT_INVENTORY_H

#include "checkpoint/checkpoint.h"

/* What a tensor belongs to, for the account of bytes. */
typedef enum pl_part {
    PL_PART_EXPERTS,        /* routed experts of the layers */
    PL_PART_ENGRAM_TABLES,  /* rows and their scales: mapped, never copied */
    PL_PART_ENGRAM,         /* wkv and the key and query gains */
    PL_PART_ATTENTION,      /* of the layers, with its own norms and sinks */
    PL_PART_COMPRESSOR,     /* compressors and indexers */
    PL_PART_SHARED_EXPERTS, /* of the layers */
    PL_PART_GATE,           /* routers of the layers */
    PL_PART_HC,             /* hyper-connections of the layers */
    PL_PART_NORMS,          /* block norms and the final norm */
    PL_PART_EMBED,
    PL_PART_HEAD,
    PL_PART_DRAFT_EXPERTS,
    PL_PART_DRAFT_BLOCKS, /* the rest of the draft stages' blocks */
    PL_PART_DRAFT_HEADS,  /* main_proj, Markov tables, confidence, norms */
    PL_PART_VISION,       /* vision, aligner, image tokens: never read */
    PL_PART_UNUSED,       /* in a folder beside the inventory: see pl_inventory_ignores */
    PL_PARTS
} pl_part;

/* What a tensor's numbers mean; synth chooses its values by it. */
typedef enum pl_role {
    PL_ROLE_MATRIX,      /* a weight, out x in */
    PL_ROLE_SCALE_BLOCK, /* its scale bytes, one per 32 x 32 block */
    PL_ROLE_SCALE_ROW,   /* its scale bytes, one per row and 32 inputs */
    PL_ROLE_TABLE,       /* Engram rows */
    PL_ROLE_TABLE_SCALE, /* their scale bytes */
    PL_ROLE_EMBEDDING,   /* rows looked up by token id */
    PL_ROLE_GAIN,        /* near 1 */
    PL_ROLE_BIAS,        /* near 0 */
    PL_ROLE_SINK,        /* attention sinks */
    PL_ROLE_HC_BASE,     /* 2S + S x S offsets */
    PL_ROLE_HC_SCALE     /* the three factors */
} pl_role;

typedef struct pl_item {
    char name[80];
    pl_dtype dtype;
    int rank;
    int64_t dim[2];
    uint64_t bytes;
    pl_part part;
    pl_role role;
    int in;        /* inputs of the weight (of its scales too) */
    bool optional; /* may be missing from a checkpoint: it is never read */
    int shard;     /* 0-based, in the release's order */
} pl_item;

typedef pl_status pl_item_fn(void *arg, const pl_item *item, pl_error *err);

/* Call fn for every tensor, shard by shard; the first failing status ends the walk and is returned. Nothing is
 * allocated.
 *
 * Shards (the release has 48): the vision part when the config has one; embed with the image tokens; one for each layer
 * without its Engram; norm and head; one for each draft stage; one for each Engram. The vision part, image tokens
 * included, is there only when the config has a vision_config; gate.bias_vl always. */
pl_status pl_inventory_each(const pl_config *config, pl_item_fn *fn, void *arg, pl_error *err);

/* How many tensors pl_inventory_each visits, by arithmetic. */
int64_t pl_inventory_count(const pl_config *config);
int pl_inventory_shards(const pl_config *config);

/* A name that a checkpoint may hold beside the inventory, whatever its type and shape, because nothing reads it:
 * vision.*, aligner.*, image_*, mtp.N.embed.*, mtp.N.head.*. */
bool pl_inventory_ignores(const char *name);

/* The name of a part for people ("routed experts") and for JSON ("routed_experts"). Static storage. */
const char *pl_part_name(pl_part part);
const char *pl_part_key(pl_part part);

/* Bytes and tensors by part. */
typedef struct pl_tally {
    int64_t tensors[PL_PARTS], total_tensors;
    uint64_t bytes[PL_PARTS], total_bytes;
} pl_tally;

void pl_tally_config(const pl_config *config, pl_tally *tally);
void pl_tally_add(pl_tally *tally, pl_part part, uint64_t bytes);

/* What an open checkpoint really holds. */
void pl_tally_checkpoint(const pl_checkpoint *checkpoint, pl_tally *tally);

/* Bytes of one value of a type, and its name in a safetensors header. */
int pl_dtype_size(pl_dtype dtype);
const char *pl_dtype_name(pl_dtype dtype);

#endif
