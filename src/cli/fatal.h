/* Two failures that nothing can return from. They end the program with exit code 1 and a line that says why. */
#ifndef PL_CLI_FATAL_H
#define PL_CLI_FATAL_H

/* From now on: a mapped file that is cut short (or cannot be read) while it is in use, named instead of a bare SIGBUS;
 * and no memory for JSON. For the program alone: a library takes neither its host's signals nor its allocator. */
void cli_catch_fatal(void);

#endif
