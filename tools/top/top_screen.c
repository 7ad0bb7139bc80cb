/* The screen of `capuchin top`: the lines of top_view, as many as fit, and keys to move in them. */
#include "tools/top/top_screen.h"

#include "tools/output/output.h"

#if CAPUCHIN_HAVE_NCURSES

#include "tools/top/top_source.h"
#include "tools/top/top_view.h"

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <string.h>
#include <unistd.h>

/* Counts the lines of a text that ends with a newline. */
static size_t count_lines(const struct string_buffer *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->length; i++) {
        count += text->data[i] == '\n';
    }
    return count;
}

/* Draws from line `first` on. The last row says what the keys do. */
static void draw(const struct string_buffer *text, size_t first)
{
    const char *line = text->data;
    int rows = LINES - 1;

    erase();
    for (size_t i = 0; i < first && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    for (int row = 0; row < rows && line != NULL && *line != '\0'; row++) {
        size_t length = strcspn(line, "\n");

        attrset(*line != ' ' ? A_BOLD : A_NORMAL);
        mvaddnstr(row, 0, line, (int)length);
        line += length + (line[length] == '\n');
    }
    attrset(A_REVERSE);
    mvaddnstr(LINES - 1, 0, " q: quit   up, down: move ", COLS > 1 ? COLS - 1 : 0);
    attrset(A_NORMAL);
    refresh();
}

/* Where a key moves to; the last line can be the first that is shown. */
static size_t move_by(int key, size_t first, size_t count)
{
    size_t page = LINES > 2 ? (size_t)LINES - 2 : 1;
    size_t last = count > 0 ? count - 1 : 0;

    switch (key) {
    case KEY_UP:
        first -= first > 0;
        break;
    case KEY_DOWN:
        first++;
        break;
    case KEY_PPAGE:
        first -= first > page ? page : first;
        break;
    case KEY_NPAGE:
        first += page;
        break;
    case KEY_HOME:
        first = 0;
        break;
    default:
        break;
    }
    return first < last ? first : last;
}

/* True: the text is that of the programs as they are now. */
static bool read_programs(const char *folder, struct string_buffer *text)
{
    struct top_style style = {.columns = (size_t)COLS,
                              .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
    struct top_snapshot snapshot;
    bool is_fine = top_snapshot_take(folder, &snapshot);

    if (is_fine) {
        string_buffer_finish(text);
        is_fine = top_view(text, &snapshot, &style) == CAPU_OK;
        top_snapshot_finish(&snapshot);
    }
    return is_fine;
}

static bool is_quit(int key)
{
    return key == 'q' || key == 'Q';
}

int top_screen_run(const char *folder, double seconds)
{
    struct string_buffer text = {0};
    size_t first = 0;
    bool is_fine = true;
    int key = ERR;

    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        say("top needs a terminal; --once prints a table");
        return EXIT_USAGE;
    }
    /* Not for numbers: those stay as in all other output. */
    (void)setlocale(LC_CTYPE, "");
    if (newterm(NULL, stdout, stdin) == NULL) {
        say("the terminal is of a kind that is not known (TERM); --once prints a table");
        return EXIT_USAGE;
    }
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    timeout((int)(seconds * 1000.0));
    while (is_fine && !is_quit(key)) {
        if (key == ERR || key == KEY_RESIZE) { /* ERR: the time has passed */
            is_fine = read_programs(folder, &text);
        }
        first = move_by(key, first, count_lines(&text));
        draw(&text, first);
        key = getch();
    }
    (void)endwin();
    string_buffer_finish(&text);
    if (!is_fine) {
        say("the programs cannot be shown: out of memory, or their folder cannot be read");
    }
    return is_fine ? EXIT_FINE : EXIT_USAGE;
}

#else

int top_screen_run(const char *folder, double seconds)
{
    (void)folder;
    (void)seconds;
    say("this command was built without ncurses: install libncurses-dev and build it again, or "
        "use --once");
    return EXIT_USAGE;
}

#endif
