/* The table of settings and the table of commands. Everything a user may set is here and nowhere else. */
#include "base/settings.h"

#include <stdint.h>
#include <string.h>

#define GENERATES (PL_CMD_RUN | PL_CMD_SERVE)
#define LOADS     (PL_CMD_RUN | PL_CMD_SERVE | PL_CMD_LOGITS | PL_CMD_TRACE | PL_CMD_DRAFTS)
#define TAKES_IDS (PL_CMD_RUN | PL_CMD_LOGITS | PL_CMD_TRACE | PL_CMD_DRAFTS)

/* clang-format off */
const pl_setting pl_setting_table[PL_SET_COUNT] = {
    {PL_SET_MODEL, "model", .letter = 'm', .kind = PL_KIND_TEXT, .env = true, .arg = "DIR",
     .help = "checkpoint folder; without it the model that comes with Paceline (models/nano)",
     .commands = LOADS | PL_CMD_INSPECT | PL_CMD_TOKENIZE},
    {PL_SET_THREADS, "threads", .kind = PL_KIND_INT, .env = true, .standard = "auto", .imin = 1, .imax = 1024,
     .word = "auto", .word_value = 0, .arg = "N",
     .help = "threads that compute; auto: every processor this process may use; no token depends on it",
     .commands = LOADS | PL_CMD_INSPECT | PL_CMD_BENCH},
    {PL_SET_CACHE_DIR, "cache-dir", .kind = PL_KIND_TEXT, .env = true, .arg = "DIR",
     .help = "where computed token maps are kept; without it $XDG_CACHE_HOME/paceline, else ~/.cache/paceline",
     .commands = LOADS},

    {PL_SET_IDS, "ids", .kind = PL_KIND_IDS, .arg = "LIST",
     .help = "the input as token ids, taken as they are", .commands = TAKES_IDS},
    {PL_SET_RAW, "raw", .kind = PL_KIND_SWITCH, .standard = "off",
     .help = "continue the text as it stands, without the chat form; spellings of control tokens are matched",
     .commands = PL_CMD_RUN},
    {PL_SET_BOS, "bos", .kind = PL_KIND_SWITCH, .standard = "off",
     .help = "with --raw: put the begin-of-sentence token first", .commands = PL_CMD_RUN},
    {PL_SET_THINKING, "thinking", .kind = PL_KIND_SWITCH, .env = true,
     .help = "let the model reason before it answers; default: what its generation_config.json says, else on",
     .commands = GENERATES},
    {PL_SET_EFFORT, "effort", .kind = PL_KIND_TEXT, .env = true, .standard = "high", .arg = "EFFORT",
     .help = "how hard to think: low, high, max or a number from 1 to 100", .commands = GENERATES},
    {PL_SET_SYSTEM, "system", .kind = PL_KIND_TEXT, .arg = "TEXT",
     .help = "a system message before the prompt", .commands = PL_CMD_RUN},

    {PL_SET_MAX_TOKENS, "max-tokens", .kind = PL_KIND_INT, .env = true, .standard = "auto", .imin = 1,
     .imax = 16777216, .word = "auto", .word_value = 0, .arg = "N",
     .help = "most tokens of a reply; auto: 8192, and 65536 when the model thinks", .commands = GENERATES},
    {PL_SET_TEMPERATURE, "temperature", .kind = PL_KIND_REAL, .env = true, .fmin = 0, .fmax = 2, .arg = "T",
     .help = "0 always takes the most likely token; default: the model's generation_config.json, else 1",
     .commands = GENERATES},
    {PL_SET_TOP_P, "top-p", .kind = PL_KIND_REAL, .env = true, .fmin = 0, .fmax = 1, .open = true, .arg = "P",
     .help = "draw from the smallest set of tokens whose probabilities reach P; default: the model's, else 1",
     .commands = GENERATES},
    {PL_SET_TOP_K, "top-k", .kind = PL_KIND_INT, .env = true, .imin = -1, .imax = INT32_MAX, .arg = "K",
     .help = "draw from the K most likely tokens; 0 and -1: from all; default: the model's, else all",
     .commands = GENERATES},
    {PL_SET_MIN_P, "min-p", .kind = PL_KIND_REAL, .env = true, .fmin = 0, .fmax = 1, .arg = "P",
     .help = "leave out tokens less likely than P times the likeliest; default: the model's, else 0",
     .commands = GENERATES},
    {PL_SET_SEED, "seed", .kind = PL_KIND_INT, .imin = INT64_MIN, .imax = INT64_MAX, .arg = "N",
     .help = "seed of the draws; without it one is derived from the prompt and --seed-salt", .commands = PL_CMD_RUN},
    {PL_SET_SEED_SALT, "seed-salt", .kind = PL_KIND_TEXT, .env = true, .arg = "TEXT",
     .help = "mixed into derived seeds; the word random makes every reply without a seed another one",
     .commands = GENERATES},
    {PL_SET_IGNORE_EOS, "ignore-eos", .kind = PL_KIND_SWITCH, .standard = "off",
     .help = "go on past the end token up to --max-tokens", .commands = PL_CMD_RUN},
    {PL_SET_DRAFTS, "drafts", .kind = PL_KIND_SWITCH, .env = true, .standard = "on",
     .help = "let the drafter work ahead; it changes the pace and never a token", .commands = GENERATES},
    {PL_SET_CONTEXT, "context", .kind = PL_KIND_INT, .env = true, .standard = "auto", .imin = 16, .imax = 16777216,
     .word = "auto", .word_value = 0, .arg = "N",
     .help = "tokens of prompt and reply together; auto: what the model was made for, 32768 at most",
     .commands = GENERATES | PL_CMD_INSPECT},

    {PL_SET_HOST, "host", .kind = PL_KIND_TEXT, .env = true, .standard = "127.0.0.1", .arg = "ADDRESS",
     .help = "address to listen on", .commands = PL_CMD_SERVE},
    {PL_SET_PORT, "port", .kind = PL_KIND_INT, .env = true, .standard = "8080", .imin = 0, .imax = 65535, .arg = "N",
     .help = "port to listen on; 0: any free one", .commands = PL_CMD_SERVE},
    {PL_SET_NAME, "name", .kind = PL_KIND_TEXT, .env = true, .arg = "NAME",
     .help = "what /v1/models calls the model; default: its folder's name", .commands = PL_CMD_SERVE},
    {PL_SET_STRICT_NAME, "strict-name", .kind = PL_KIND_SWITCH, .env = true, .standard = "off",
     .help = "refuse requests that name another model; else any name is this model", .commands = PL_CMD_SERVE},
    {PL_SET_QUEUE, "queue", .kind = PL_KIND_INT, .env = true, .standard = "64", .imin = 1, .imax = 1048576, .arg = "N",
     .help = "requests that may wait; further ones are refused with 429", .commands = PL_CMD_SERVE},
    {PL_SET_KEEP_ALIVE, "keep-alive", .kind = PL_KIND_INT, .env = true, .standard = "10", .imin = 1, .imax = 3600,
     .arg = "S", .help = "seconds after which a waiting client is sent a sign of life", .commands = PL_CMD_SERVE},
    {PL_SET_GRACE, "grace", .kind = PL_KIND_INT, .env = true, .standard = "10", .imin = 0, .imax = 86400, .arg = "S",
     .help = "seconds that running requests get to finish when the server is told to stop", .commands = PL_CMD_SERVE},
    {PL_SET_LOG, "log", .kind = PL_KIND_CHOICE, .env = true, .standard = "info", .choices = "error|warning|info|debug",
     .arg = "LEVEL", .help = "how much is told on standard error", .commands = GENERATES},

    {PL_SET_JSON, "json", .kind = PL_KIND_SWITCH, .standard = "off", .help = "print one JSON object",
     .commands = PL_CMD_RUN | PL_CMD_TOKENIZE | PL_CMD_DRAFTS | PL_CMD_INSPECT | PL_CMD_BENCH},
    {PL_SET_OUT, "out", .kind = PL_KIND_TEXT, .arg = "PATH", .help = "where to write",
     .commands = PL_CMD_LOGITS | PL_CMD_TRACE | PL_CMD_SYNTH},
    {PL_SET_ALL, "all", .kind = PL_KIND_SWITCH, .standard = "off",
     .help = "a row for every position, not only for the last", .commands = PL_CMD_LOGITS},
    {PL_SET_ANCHOR, "anchor", .kind = PL_KIND_INT, .imin = 0, .imax = INT32_MAX, .arg = "ID",
     .help = "the token that follows the ids; without it the target's own most likely one", .commands = PL_CMD_DRAFTS},
    {PL_SET_LAYER, "layer", .kind = PL_KIND_INT, .imin = 0, .imax = 511, .arg = "L",
     .help = "run this layer alone, on the streams given by --h and --pre", .commands = PL_CMD_TRACE},
    {PL_SET_H, "h", .kind = PL_KIND_TEXT, .arg = "FILE",
     .help = "with --layer: the streams after every layer, bfloat16 (layer, position, stream, dim)",
     .commands = PL_CMD_TRACE},
    {PL_SET_PRE, "pre", .kind = PL_KIND_TEXT, .arg = "FILE",
     .help = "with --layer: the collapse weights after every layer, float32 (layer, position, stream)",
     .commands = PL_CMD_TRACE},
    {PL_SET_CONFIG, "config", .kind = PL_KIND_TEXT, .arg = "FILE", .help = "a config.json, without a checkpoint",
     .commands = PL_CMD_INSPECT | PL_CMD_SYNTH},
    {PL_SET_TOKENIZER, "tokenizer", .kind = PL_KIND_TEXT, .arg = "FILE",
     .help = "a tokenizer.json, without a checkpoint", .commands = PL_CMD_TOKENIZE},
    {PL_SET_TEXT, "text", .kind = PL_KIND_TEXT, .standard = "-", .arg = "FILE",
     .help = "the text to read; -: standard input", .commands = PL_CMD_TOKENIZE},
    {PL_SET_JSONL, "jsonl", .kind = PL_KIND_TEXT, .arg = "FILE",
     .help = "read lines {\"s\": TEXT} and print a JSON array of ids for each (with --decode the other way)",
     .commands = PL_CMD_TOKENIZE},
    {PL_SET_SPECIAL, "special", .kind = PL_KIND_SWITCH, .standard = "on",
     .help = "match the spellings of added tokens; off: everything is text (with --decode: special ones are left out)",
     .commands = PL_CMD_TOKENIZE},
    {PL_SET_DECODE, "decode", .kind = PL_KIND_SWITCH, .standard = "off", .help = "read ids and print their text",
     .commands = PL_CMD_TOKENIZE},
    {PL_SET_SYNTH_SEED, "seed", .kind = PL_KIND_INT, .standard = "0", .imin = 0, .imax = INT64_MAX, .arg = "N",
     .help = "seed of the random weights", .commands = PL_CMD_SYNTH},
    {PL_SET_ROWS, "rows", .kind = PL_KIND_TEXT, .standard = "1,6,64,512", .arg = "LIST",
     .help = "rows a launch, separated by commas, 1 to 4096", .commands = PL_CMD_BENCH},
    {PL_SET_ISA, "isa", .kind = PL_KIND_CHOICE, .standard = "auto", .choices = "auto|scalar|avx2|avx512|neon",
     .arg = "ISA", .help = "instruction set to use; auto: the widest here; no bit of a result depends on it",
     .commands = PL_CMD_BENCH | PL_CMD_LOGITS | PL_CMD_TRACE | PL_CMD_DRAFTS},
    {PL_SET_SECONDS, "seconds", .kind = PL_KIND_REAL, .standard = "0.4", .fmin = 0, .fmax = 60, .open = true,
     .arg = "S", .help = "seconds spent on each figure", .commands = PL_CMD_BENCH},
};

const pl_command pl_command_table[] = {
    {"serve", PL_CMD_SERVE, "[-m DIR] [SETTINGS]", "serve the model over HTTP, with the OpenAI API", 0, 0},
    {"run", PL_CMD_RUN, "[-m DIR] [SETTINGS] PROMPT", "one reply in the terminal; PROMPT - reads standard input", 0, 1},
    {"inspect", PL_CMD_INSPECT, "DIR | --config FILE", "a checkpoint's config, bytes by part, memory it takes", 0, 1},
    {"synth", PL_CMD_SYNTH, "--config FILE --seed N --out DIR", "write a random checkpoint of any shape", 0, 0},
    {"tokenize", PL_CMD_TOKENIZE, "(-m DIR | --tokenizer FILE) [--text FILE|- | TEXT]", "text to token ids and back",
     0, 1},
    {"logits", PL_CMD_LOGITS, "[-m DIR] --ids LIST [--all] --out FILE", "the target's logits as float32 rows", 0, 0},
    {"trace", PL_CMD_TRACE, "[-m DIR] --ids LIST --out DIR [--layer L --h FILE --pre FILE]",
     "the streams after each layer, or one layer alone", 0, 0},
    {"drafts", PL_CMD_DRAFTS, "[-m DIR] --ids LIST [--anchor ID] [--json]", "what the drafter proposes after these ids",
     0, 0},
    {"bench", PL_CMD_BENCH, "kernels [SETTINGS]", "measure this machine at the release's shapes", 0, 4},
    {0},
};
/* clang-format on */

const pl_command *pl_command_find(const char *name)
{
    for (const pl_command *c = pl_command_table; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
