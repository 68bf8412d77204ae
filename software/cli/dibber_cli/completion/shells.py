"""The completion scripts: each Place becomes cases of bash and zsh, and lines of fish.

bash and zsh walk along the present words. They find the Place, its number of positionals, and
whether an option waits for its value. Sockets of the simulator in the background complete
as URIs.
"""

# SPDX-License-Identifier: BSD-2-Clause

from collections.abc import Callable, Iterable, Iterator, Sequence

from dibber_cli.completion.tree import FILES, URIS, Place, Value

HEAD = "# Completion of dibber; made by 'dibber completion'.\n"
SOCKETS = '"${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"/dibber-"$(id -u)"/card*.sock'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _walk_cases(places: Sequence[Place]) -> tuple[str, str]:
    """Cases that follow the path, and cases of options that take a value."""
    steps = [f"{p.path} {name}" for p in places for name, _ in p.commands]
    takes = [f"{p.path} {name}" for p in places for o in p.options if o.value for name in o.names]
    return ("|".join(f'"{s}"' for s in steps), "|".join(f'"{t}"' for t in takes))


def _value_cases(places: Sequence[Place]) -> Iterator[tuple[str, Value]]:
    """(pattern, Value) for each value that an option takes, and for each positional: "path #n"."""
    for p in places:
        for o in p.options:
            if o.value:
                yield "|".join(f'"{p.path} {name}"' for name in o.names), o.value
        for n, value in enumerate(p.positionals):
            last = p.many and n == len(p.positionals) - 1
            yield f'"{p.path} #"*' if last else f'"{p.path} #{n}"', value


# bash ---------------------------------------------------------------------------------------------


def bash(places: Sequence[Place]) -> str:
    steps, takes = _walk_cases(places)
    lines = [
        HEAD + "_dibber() {",
        "\tlocal current=${COMP_WORDS[COMP_CWORD]} place=dibber count=0 waits= word words= kind= "
        "i before=",
        "\t# Bash takes ':' and '=' for words of their own: what stands around them is one.",
        "\tfor ((i = 1; i < COMP_CWORD; i++)); do",
        "\t\tword=${COMP_WORDS[i]}",
        "\t\tif [[ $word == [:=] || $before == [:=] ]]; then before=$word; continue; fi",
        "\t\tbefore=$word",
        "\t\tif [[ $waits ]]; then waits=; continue; fi",
        '\t\tcase "$place $word" in',
        f'\t\t{steps}) place="$place $word" ;;',
        f"\t\t{takes}) waits=$word ;;",
        "\t\t*) [[ $word == -* ]] || ((count++)) ;;",
        "\t\tesac",
        "\tdone",
        "\tif [[ $current == [:=] ]]; then current=; fi",
        "\tif [[ $before == : && ! $waits ]]; then ((count--)); fi",
        '\tcase "$place ${waits:-#$count}" in',
    ]
    for pattern, value in _value_cases(places):
        lines.append(f"\t{pattern}) words={_quoted(' '.join(value.words))} kind={value.kind} ;;")
    lines += [
        "\tesac",
        "\tif [[ ! $waits && ( $current == -* || ! $words$kind ) ]]; then",
        '\t\tcase "$place" in',
    ]
    for p in places:
        names = [name for name, _ in p.commands] + [name for o in p.options for name in o.names]
        lines.append(f'\t\t"{p.path}") words={_quoted(" ".join(names))} kind= ;;')
    lines += [
        "\t\tesac",
        "\tfi",
        "\tif [[ $kind == uris ]]; then",
        f'\t\tfor word in {SOCKETS}; do [[ -S $word && -O $word ]] && words+=" sim:$word"; done',
        "\tfi",
        "\tCOMPREPLY=()",
        "\tif [[ $kind == uris && ( $before == : || ${COMP_WORDS[COMP_CWORD]} == : ) ]]; then "
        "words=${words//sim:/}; fi",
        '\twhile IFS= read -r word; do COMPREPLY+=("$word"); done < <(',
        '\t\t[[ $words ]] && compgen -W "$words" -- "$current"; [[ $kind == files ]] && compgen '
        '-f -- "$current")',
        "}",
        "complete -o filenames -F _dibber dibber",
        "",
    ]
    return "\n".join(lines)


# zsh ----------------------------------------------------------------------------------------------


def _pairs(items: Iterable[tuple[str, str]]) -> str:
    """name:text words of _describe."""
    escaped = ((name.replace(":", "\\:"), text) for name, text in items)
    return " ".join(_quoted(f"{name}:{text}" if text else name) for name, text in escaped)


def zsh(places: Sequence[Place]) -> str:
    steps, takes = _walk_cases(places)
    lines = [
        "#compdef dibber",
        HEAD + "_dibber() {",
        "\tlocal place=dibber waits= word kind= count=0 i",
        "\tlocal -a named options found",
        "\tfor ((i = 2; i < CURRENT; i++)); do",
        "\t\tword=${words[i]}",
        "\t\tif [[ -n $waits ]]; then waits=; continue; fi",
        '\t\tcase "$place $word" in',
        f'\t\t{steps}) place="$place $word" ;;',
        f"\t\t{takes}) waits=$word ;;",
        "\t\t*) [[ $word == -* ]] || ((count++)) ;;",
        "\t\tesac",
        "\tdone",
        '\tcase "$place" in',
    ]
    for p in places:
        options = [(name, o.text) for o in p.options for name in o.names]
        lines.append(f'\t"{p.path}") named=({_pairs(p.commands)}); options=({_pairs(options)}) ;;')
    lines += ["\tesac", '\tcase "$place ${waits:-#$count}" in']
    for pattern, value in _value_cases(places):
        lines.append(
            f"\t{pattern}) found=({' '.join(map(_quoted, value.words))}); kind={value.kind} ;;"
        )
    lines += [
        "\tesac",
        f'\tif [[ $kind == uris ]]; then for word in {SOCKETS}(NU); do found+=("sim:$word"); '
        f"done; fi",
        "\tif [[ -z $waits ]]; then",
        "\t\t(( ${#named} )) && _describe command named",
        "\t\t_describe option options",
        "\tfi",
        '\t(( ${#found} )) && compadd -- "${found[@]}"',
        "\t[[ $kind == files ]] && _files",
        "\treturn 0",
        "}",
        'if [[ $funcstack[1] == _dibber ]]; then _dibber "$@"; else compdef _dibber dibber; fi',
        "",
    ]
    return "\n".join(lines)


# fish ---------------------------------------------------------------------------------------------

FISH_HEAD = """function __dibber_place --description 'the command that the words so far name'
\tset -l place dibber
\tfor word in (commandline -opc)[2..-1]
\t\tcontains -- "$place $word" $__dibber_steps; and set place "$place $word"
\tend
\techo $place
end
function __dibber_uris --description 'sockets of the simulator in the background'
\tset -l folder $XDG_RUNTIME_DIR $TMPDIR /tmp
\tfor socket in $folder[1]/dibber-(id -u)/card*.sock
\t\ttest -O $socket; and echo sim:$socket
\tend
end
complete -c dibber -f
"""


def _fish_value(value: Value, option: bool) -> str:
    """Arguments of `complete` for a value; `option`: the value belongs to an option, which needs
    it.
    """
    words = " ".join(value.words) + (" (__dibber_uris)" if value.kind == URIS else "")
    parts = [] if not option else ["-r"] if value.kind == FILES else ["-x"]
    if not option and value.kind == FILES:
        parts.append("-F")
    if words.strip():
        parts.append(f"-a {_quoted(words.strip())}")
    return " ".join(parts)


def fish(places: Sequence[Place]) -> str:
    steps = " ".join(_quoted(f"{p.path} {name}") for p in places for name, _ in p.commands)
    lines = [f"{HEAD}set -g __dibber_steps {steps}", FISH_HEAD]
    for p in places:
        at = f"complete -c dibber -n \"test (__dibber_place) = '{p.path}'\""
        lines += [f"{at} -a {name} -d {_quoted(text)}" for name, text in p.commands]
        for o in p.options:
            names = " ".join(
                f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in o.names
            )
            lines.append(
                f"{at} {names} -d {_quoted(o.text)} "
                f"{_fish_value(o.value, True) if o.value else ''}".rstrip()
            )
        for value in p.positionals:
            if words := _fish_value(value, False):
                lines.append(f"{at} {words}")
    return "\n".join([*lines, ""])


SHELLS: dict[str, Callable[[Sequence[Place]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
