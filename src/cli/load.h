/* A checkpoint opened for the commands that look inside the model: logits, trace, drafts. */
#ifndef PL_CLI_LOAD_H
#define PL_CLI_LOAD_H

#include "cli/cmd.h"
#include "model/model.h"
#include "text/token_map.h"

typedef struct cli_model {
    pl_checkpoint *checkpoint;
    const pl_config *config; /* the checkpoint's */
    pl_model *model;         /* one slot, with room for the ids */
    int32_t *ids;            /* --ids, each below vocab_size */
    int count;               /* of ids, at least 1 */
} cli_model;

/* Open what -m names and read --ids, which must be given; the slot holds `spare` more tokens than the ids where the
 * model's positions allow. PL_EINVAL when ids are missing, past the vocabulary or more than the model's positions. */
pl_status cli_model_open(cli_model *m, const pl_settings *settings, int spare, pl_error *err);
void cli_model_close(cli_model *m);

/* Run all ids in launches of at most `rows` (0: the largest pieces). `each` (may be NULL) is called after every launch
 * with its first position and its rows; with PL_WANT_LAST only the last launch makes logits. A long run tells its
 * progress on standard error. */
typedef pl_status cli_launch_fn(void *arg, int pos, int rows, pl_error *err);
pl_status cli_model_run(cli_model *m, int rows, pl_want want, const pl_tracer *tracer, cli_launch_fn *each, void *arg,
                        pl_error *err);

/* PL_EINVAL naming the setting unless it was given. */
pl_status cli_require(const pl_settings *settings, pl_setting_id id, pl_error *err);

#endif
