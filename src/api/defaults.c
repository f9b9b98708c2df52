/* generation_config.json as a source of defaults. */
#include "api/defaults.h"

#include "base/file.h"

#include <stdlib.h>

void pl_defaults_unset(pl_defaults *d)
{
    *d = (pl_defaults){.thinking = -1};
}

pl_status pl_defaults_from_dir(pl_defaults *d, const char *dir, pl_generation *generation, pl_error *err)
{
    pl_defaults_unset(d);
    *generation = (pl_generation){0};
    char *path = pl_path_join(dir, "generation_config.json");
    if (!path)
        return pl_fail(err, PL_ENOMEM, "no memory for a path");
    pl_status status = pl_generation_load(generation, path, err);
    free(path);
    PL_TRY(status);
    d->sampling = pl_sampling_of_generation(generation);
    if (generation->has & PL_GEN_THINKING)
        d->thinking = generation->thinking;
    return PL_OK;
}
