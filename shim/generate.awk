# awk -v part=trampolines|wrappers -f generate.awk names.txt: the C source with
# trampolines: the table of all symbols, and what is exported for those that are not wrapped;
# wrappers: the table of our own functions.
#
# A trampoline jumps to the address in its symbol's entry, which at first is that of a piece of code that
# looks the function up. x86-64 only: the code is assembler, since it must pass on arguments that it does
# not know.

function base_of(name) {
    sub(/_pt[sd][sz]$/, "", name)
    sub(/_v[0-9]+$/, "", name)
    return name
}

# Whether calls are refused.
function is_refused(kind) {
    return kind ~ /^REFUSE/
}

# Whether it is a function of ours.
function is_own(kind) {
    return kind == "wrap" || kind == "count"
}

BEGIN {
    count = 0
    print "/* Made by shim/generate.awk. */"
    print "#include \"shim/driver/symbol.h\""
}

/^#/ || NF == 0 { next }

$2 != "" && $2 != "refuse" && !(is_own($2) && $3 ~ /^[0-9]+$/ && NF == 3) {
    print FILENAME ":" FNR ": " $0 > "/dev/stderr"
    failed = 1
    exit 1
}

{
    name[count] = $1
    kind[count] = $2 == "" ? "FORWARD" : toupper($2 ($3 == "program" ? "_" $3 : ""))
    version[count] = is_own($2) ? $3 : 0
    is_per_thread[count] = $1 ~ /_pt[sd][sz]$/
    count++
}

# The table first: the code finds an entry by its distance from the beginning.
function trampolines(    i, entry) {
    for (i = 0; i < count; i++) {
        printf "extern char symbol_refusal_%d[];\n", i
        if (kind[i] == "FORWARD") printf "extern char symbol_lazy_%d[];\n", i
        if (is_refused(kind[i])) printf "extern char %s[];\n", name[i]
    }
    print "struct symbol symbols[] = {"
    for (i = 0; i < count; i++) {
        entry = kind[i] == "FORWARD" ? "symbol_lazy_" i : is_refused(kind[i]) ? name[i] : "NULL"
        printf "    {%s, symbol_refusal_%d, \"%s\", \"%s\", %d, SYMBOL_%s, %d},\n", entry, i, name[i],
               base_of(name[i]), version[i], kind[i], is_per_thread[i]
    }
    print "};"
    printf "const size_t symbol_count = %d;\n", count
    print "__asm__(\".text\\n\""
    print "\".macro entry name\\n .globl \\\\name\\n .type \\\\name, @function\\n .p2align 4\\n\""
    print "\"\\\\name: endbr64\\n.endm\\n\""
    for (i = 0; i < count; i++) {
        entry = "symbols+" i * 40 "(%rip)"
        if (kind[i] == "FORWARD") {
            printf "\"entry %s\\n jmp *%s\\n\"\n", name[i], entry
            printf "\"symbol_lazy_%d: leaq %s, %%r11\\n jmp symbol_resolve_and_jump\\n\"\n", i, entry
        } else if (is_refused(kind[i])) {
            printf "\"entry %s\\n leaq %s, %%r11\\n jmp symbol_judge_and_jump\\n\"\n", name[i], entry
        }
        printf "\"symbol_refusal_%d: leaq %s, %%rdi\\n jmp symbol_refuse\\n\"\n", i, entry
    }
    print ");"
}

function wrappers(    i) {
    for (i = 0; i < count; i++)
        if (is_own(tolower(kind[i]))) printf "extern char %s[];\n", name[i]
    print "static const struct symbol_wrapper wrappers[] = {"
    for (i = 0; i < count; i++)
        if (is_own(tolower(kind[i]))) printf "    {%d, %s},\n", i, name[i]
    print "};"
    print "__attribute__((constructor)) static void publish(void)"
    print "{\n    symbol_publish(wrappers, sizeof(wrappers) / sizeof(wrappers[0]));\n}"
}

END {
    if (failed) exit 1
    if (part == "trampolines") trampolines()
    else wrappers()
}
