/* The tables of target.h, bound to a pl_model: the only file of lanes that knows the model. */
#ifndef PL_LANES_MODEL_TARGET_H
#define PL_LANES_MODEL_TARGET_H

#include "lanes/target.h"
#include "model/model.h"

typedef struct pl_model_target pl_model_target;

/* Bind a model, which must outlive the tables. PL_ENOMEM. */
pl_status pl_model_target_open(pl_model_target **target, pl_model *model, pl_error *err);
void pl_model_target_close(pl_model_target *target); /* NULL is allowed */

/* The tables' numbers for a model of these settings (resolved), its functions left out: what a plan needs. */
void pl_model_target_shape(pl_target *target, pl_draft_table *drafter, const pl_config *config,
                           const pl_model_settings *settings);

/* Owned by the target. */
const pl_target *pl_model_target_table(const pl_model_target *target);
const pl_draft_table *pl_model_target_drafter(const pl_model_target *target);

#endif
