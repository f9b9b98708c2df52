/* Settings: one table (settings_table.c) from which flags, PACELINE_* variables, --help, docs/environment.md and the
 * start-up report are made. A value comes from the flag, else the environment, else the table's default; a malformed
 * one stops the start with an error that names the setting, its text and the accepted forms. */
#ifndef PL_BASE_SETTINGS_H
#define PL_BASE_SETTINGS_H

#include "base/buf.h"

/* Every setting of every command. A new one: an id here, a row in settings_table.c, docs/environment.md made anew. */
typedef enum pl_setting_id {
    PL_SET_MODEL,
    PL_SET_THREADS,
    PL_SET_CACHE_DIR,
    /* a prompt and what is made of it */
    PL_SET_IDS,
    PL_SET_RAW,
    PL_SET_BOS,
    PL_SET_THINKING,
    PL_SET_EFFORT,
    PL_SET_SYSTEM,
    /* a reply */
    PL_SET_MAX_TOKENS,
    PL_SET_TEMPERATURE,
    PL_SET_TOP_P,
    PL_SET_TOP_K,
    PL_SET_MIN_P,
    PL_SET_SEED,
    PL_SET_SEED_SALT,
    PL_SET_IGNORE_EOS,
    PL_SET_DRAFTS,
    PL_SET_CONTEXT,
    /* the server */
    PL_SET_HOST,
    PL_SET_PORT,
    PL_SET_NAME,
    PL_SET_STRICT_NAME,
    PL_SET_QUEUE,
    PL_SET_KEEP_ALIVE,
    PL_SET_GRACE,
    PL_SET_LOG,
    /* several streams, drafted ahead */
    PL_SET_PARALLEL,
    PL_SET_PLAIN_STREAMS,
    PL_SET_DEPTH_JOINT,
    PL_SET_DECODE_SHARE,
    PL_SET_PREFILL_ORDER,
    PL_SET_ACCEPT_LOG,
    PL_SET_ROUND_PROFILE,
    /* files and forms of the small tools */
    PL_SET_JSON,
    PL_SET_JSON_IDS, /* --json of tokenize */
    PL_SET_OUT,
    PL_SET_OUT_DIR, /* --out of trace and synth */
    PL_SET_ALL,
    PL_SET_ANCHOR,
    PL_SET_LAYER,
    PL_SET_H,
    PL_SET_PRE,
    PL_SET_CONFIG,
    PL_SET_TOKENIZER,
    PL_SET_TEXT,
    PL_SET_JSONL,
    PL_SET_SPECIAL,
    PL_SET_DECODE,
    PL_SET_SYNTH_SEED,
    /* bench */
    PL_SET_ROWS,
    PL_SET_ISA,
    PL_SET_SECONDS,
    /* bench: the clients */
    PL_SET_LEVELS,
    PL_SET_BENCH_TOKENS,
    PL_SET_REPS,
    PL_SET_BENCH_SEED,
    PL_SET_NO_SEED,
    PL_SET_TEMPERATURES,
    PL_SET_PROMPTS,
    PL_SET_PROMPT_FILE,
    PL_SET_MIXED,
    PL_SET_ALONE,
    PL_SET_SERIAL,
    PL_SET_STAGGER_MS,
    PL_SET_TIMEOUT,
    PL_SET_MODEL_NAME,
    PL_SET_API_KEY,
    PL_SET_LABEL,
    PL_SET_OUTPUT,
    PL_SET_BENCH_JSON,
    PL_SET_ROUNDS,
    PL_SET_RERUNS,
    PL_SET_READY,
    PL_SET_QUIET,
    PL_SET_BUSY_LIMIT,
    PL_SET_CELSIUS_LIMIT,
    PL_SET_COMPARE,
    PL_SET_COUNT
} pl_setting_id;

typedef enum pl_setting_kind {
    PL_KIND_SWITCH, /* --name turns on, --no-name off; in the environment on/off, true/false, yes/no, 1/0 */
    PL_KIND_INT,    /* whole number in [imin, imax], or `word` */
    PL_KIND_REAL,   /* number in [fmin, fmax] (fmin itself excluded when open), or `word` */
    PL_KIND_TEXT,   /* any text that is not empty */
    PL_KIND_CHOICE, /* one of `choices` */
    PL_KIND_IDS     /* token ids separated by commas, @FILE that holds such a list, or "-": standard input holds it */
} pl_setting_kind;

/* Which command a setting belongs to: a set of bits. */
typedef enum pl_command_bit {
    PL_CMD_SERVE = 1 << 0,
    PL_CMD_RUN = 1 << 1,
    PL_CMD_INSPECT = 1 << 2,
    PL_CMD_SYNTH = 1 << 3,
    PL_CMD_TOKENIZE = 1 << 4,
    PL_CMD_LOGITS = 1 << 5,
    PL_CMD_TRACE = 1 << 6,
    PL_CMD_DRAFTS = 1 << 7,
    PL_CMD_BENCH = 1 << 8,
    PL_CMD_SIMULATE = 1 << 9,
    PL_CMD_BENCH_CONCURRENT = 1 << 10,
    PL_CMD_BENCH_OPENAI = 1 << 11,
    PL_CMD_BENCH_ARMS = 1 << 12
} pl_command_bit;

typedef struct pl_setting {
    pl_setting_id id;
    const char *name; /* "max-tokens": the flag is --max-tokens, the variable PACELINE_MAX_TOKENS */
    char letter;      /* short flag, 0 without */
    pl_setting_kind kind;
    bool env;             /* may come from the environment */
    const char *standard; /* the default as a user would write it; NULL: none, pl_set_given tells */
    int64_t imin, imax;
    double fmin, fmax;
    bool open;
    const char *word; /* a word that stands for word_value */
    int64_t word_value;
    const char *choices;  /* "low|high|max" */
    const char *arg;      /* "N", "DIR": how --help shows the value */
    bool named;           /* TEXT: a file or folder that must have a name, so "-" (a standard stream) is refused */
    const char *help;     /* one sentence, no full stop */
    const char *off_help; /* of a switch that is on by default: what --no-NAME does */
    unsigned commands;    /* pl_command_bit set */
} pl_setting;

typedef struct pl_command {
    const char *name;
    pl_command_bit bit;
    const char *usage;      /* what follows "paceline NAME" */
    const char *summary;    /* one line */
    int args_min, args_max; /* how many words besides the settings it takes */
    const char *notes;      /* lines for --help behind the usage, each with its newline; NULL: none */
} pl_command;

/* The tables. PL_SET_COUNT rows in id order; the commands end with a NULL name. */
extern const pl_setting pl_setting_table[PL_SET_COUNT];
extern const pl_command pl_command_table[];
/* The row of a command by name, NULL when there is none. */
const pl_command *pl_command_find(const char *name);

typedef enum pl_setting_source { PL_FROM_DEFAULT, PL_FROM_ENV, PL_FROM_FLAG } pl_setting_source;

typedef struct pl_setting_value {
    const char
        *text; /* as it was written; NULL when neither given nor defaulted. Points into argv, environ or the table */
    int64_t integer; /* INT, SWITCH (0 or 1), CHOICE (its index) */
    double real;     /* REAL */
    pl_setting_source source;
} pl_setting_value;

enum { PL_MAX_ARGS = 64 };

/* What one start was asked to do. Borrowed pointers only: nothing to free, argv and environ must outlive it. */
typedef struct pl_settings {
    const pl_command *command;
    pl_setting_value value[PL_SET_COUNT];
    const char *arg[PL_MAX_ARGS]; /* the words that are not settings, in order */
    int args;
    bool help, version; /* --help or --version was among the flags; then nothing else was checked */
} pl_settings;

/* Read `argv` (the words after the command's name) and `env` ("NAME=VALUE" strings, NULL-terminated, may be NULL).
 * Forms: --name VALUE, --name=VALUE, -m VALUE, --switch, --no-switch; "--" ends the settings; the last of two wins.
 * PL_EINVAL (param = the setting's name) for an unknown flag, a missing or malformed value, too few or too many words.
 * A PACELINE_* variable that no setting knows is a warning in the log. */
pl_status pl_settings_parse(pl_settings *settings, const pl_command *command, int argc, char *const *argv,
                            char *const *env, pl_error *err);

/* Refuse a value that the table cannot check, in the words of all refusals: --NAME, its variable when it came from
 * there, what is expected, what was found. Returns PL_EINVAL. */
pl_status pl_set_refuse(const pl_settings *settings, pl_setting_id id, const char *expected, pl_error *err);

/* Was it given by flag or environment (so not the default)? */
bool pl_set_given(const pl_settings *settings, pl_setting_id id);
/* The value. Only for a setting of this command and of that kind; without a value "", 0 or 0.0. */
const char *pl_set_text(const pl_settings *settings, pl_setting_id id);
int64_t pl_set_int(const pl_settings *settings, pl_setting_id id);
double pl_set_real(const pl_settings *settings, pl_setting_id id);
bool pl_set_on(const pl_settings *settings, pl_setting_id id);

/* Read an id list ("1,2,3", "@FILE", or "-" for standard input) into fresh memory (free with free): *ids, *count (at
 * least 1). Each id is 0..2^31-1. PL_EINVAL with the offset, PL_ELIMIT past 4 million ids, PL_ENOTFOUND, PL_EIO. */
pl_status pl_ids_parse(const char *text, int32_t **ids, size_t *count, pl_error *err);

/* PACELINE_NAME, cut to size. */
void pl_setting_variable(const pl_setting *setting, char *out, size_t size);
/* "a whole number from 1 to 65535", for messages and help. */
pl_status pl_setting_forms(const pl_setting *setting, pl_buf *out, pl_error *err);
/* The --help text of one command. */
pl_status pl_settings_help(const pl_command *command, pl_buf *out, pl_error *err);
/* docs/environment.md, whole. */
pl_status pl_settings_doc(pl_buf *out, pl_error *err);
/* The start-up report: one line a setting of this command, with where its value comes from. */
pl_status pl_settings_report(const pl_settings *settings, pl_buf *out, pl_error *err);

#endif
