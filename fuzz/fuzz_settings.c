/* Flags, variables and id lists from arbitrary bytes. The first byte picks the command, lines are words; a line that
 * starts with PACELINE_ is a variable. Whatever comes in: a clean refusal with a message, or values inside their
 * ranges. */
#include "base/log.h"
#include "base/settings.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 32, TEXT_CAP = 1 << 20 };

static void check_values(const pl_settings *s)
{
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *row = &pl_setting_table[i];
        const pl_setting_value *v = &s->value[i];
        if (!v->text || !(row->commands & s->command->bit) || (row->word && strcmp(v->text, row->word) == 0))
            continue;
        if (row->kind == PL_KIND_INT && (v->integer < row->imin || v->integer > row->imax))
            abort();
        if (row->kind == PL_KIND_REAL && !(v->real >= row->fmin && v->real <= row->fmax))
            abort();
        if (row->kind == PL_KIND_SWITCH && v->integer != 0 && v->integer != 1)
            abort();
    }
}

static void check_texts(const pl_settings *s)
{
    pl_buf text;
    pl_error err;
    pl_buf_init(&text, TEXT_CAP, "report");
    if (pl_settings_report(s, &text, &err) != PL_OK)
        abort();
    pl_buf_free(&text);
}

static void check_ids(const char *text)
{
    int32_t *ids;
    size_t count;
    pl_error err;
    if (text[0] == '@' || strcmp(text, "-") == 0) /* would read a file or standard input */
        return;
    if (pl_ids_parse(text, &ids, &count, &err) == PL_OK) {
        for (size_t i = 0; i < count; i++)
            if (ids[i] < 0)
                abort();
        if (!count)
            abort();
    } else if (ids || err.status == PL_OK || !err.message[0]) {
        abort();
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    pl_log_set_level(PL_LOG_ERROR);
    if (!size)
        return 0;
    int commands = 0;
    while (pl_command_table[commands].name)
        commands++;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    check_ids(text);
    char *argv[WORDS], *env[WORDS + 1];
    int argc = 0, envc = 0;
    for (char *line = text, *next; line && argc < WORDS && envc < WORDS; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, "PACELINE_", 9) == 0)
            env[envc++] = line;
        else
            argv[argc++] = line;
    }
    env[envc] = NULL;
    pl_settings settings;
    pl_error err = {0};
    if (pl_settings_parse(&settings, &pl_command_table[data[0] % commands], argc, argv, env, &err) != PL_OK) {
        if (err.status != PL_EINVAL || !err.message[0])
            abort();
    } else if (!settings.help && !settings.version) {
        check_values(&settings);
        check_texts(&settings);
    }
    free(text);
    return 0;
}
