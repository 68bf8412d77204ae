"""Manual pages from dibber.h and the headers beside it: one of section 3 for each call, and
dibber(7) about all of them.

    python pages.py HEADER [HEADER …] VERSION DATE FOLDER

Writes FOLDER/man3/dib_*.3 and FOLDER/man7/dibber.7 in the macros of man(7).
"""

# SPDX-License-Identifier: BSD-2-Clause

import pathlib
import re
import sys

from header import Header

CARDS = """\
.TP
.BI sim: PATH
A simulated card; \\fIPATH\\fR is its socket. The simulator may keep the program's time, see
.BR dib_clock_leave (3).
.TP
.BI vfio: ADDRESS
A card in a PCIe slot behind an IOMMU, bound to the kernel's driver vfio-pci. \\fIADDRESS\\fR is the
address that
.BR lspci (8)
prints, with its domain: 0000:01:00.0. One process has the card.
.TP
.BI /dev/dibber N
A card of the Linux driver dibber.ko, see
.BR dibber (4).
Many processes share it, each with endpoints of its own.
.TP
.BI uart: PORT
A card without PCIe; \\fIPORT\\fR is its serial port. After it may follow
.RI ?baud= RATE
and
.RI ?timeout= MILLISECONDS ,
with & between. Registered memory has a copy on the card, see
.BR dib_open (3).
.PP
.BR "dibber list" ,
see
.BR dibber (1),
shows the cards that can be reached, and which processes use them.
"""

CLOCK = """\
On a simulated card, simulated time stands while a program computes outside the library, and goes on
while all programs wait in it. So a run does not depend on the speed of the machine, and repeats to
the cycle. The library charges the CPU time of a call by the simulator's table; a program charges
its own work with
.BR dib_clock_charge (3).
.PP
A participant of the clock is a card with its endpoints, or an endpoint with own_clock. It belongs
to the thread that made its last call. A program that blocks on something else, such as a pipe, a
lock or another process, leaves the clock before with
.BR dib_clock_leave (3),
and comes back with
.BR dib_clock_enter (3),
which returns when all that left are back. For a wait of unknown length it makes a pause instead,
.BR dib_clock_pause (3),
for which nobody waits. A program that forgets this stops the time of all programs; after 10 seconds
the library says so on stderr, and names the participant.
.PP
.BR dib_clock_now (3)
tells the time. On all other cards it tells the system's monotonic time, and the other calls do
nothing. A run with a client that knows no clock, such as a virtual machine, does not repeat; then
.I free
of struct dib_clock is 1.
"""

ENVIRONMENT = """\
.TP
.B DIBBER_CLOCK_NOTICE
Seconds without an answer of the simulator after which the library says why time stands (10). 0
turns this off.
"""


def plain(text):
    """Text of the header for roff. Characters that roff interprets are escaped; calls and
    parameters are set in another font."""
    text = text.replace("\\", "\\e").replace("`", "")
    text = re.sub(r"\b(dib_\w+)\(\)", r"\\fB\1\\fR()", text)
    text = re.sub(r"@(\w+)", r"\\fI\1\\fR", text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def code(text):
    """Lines of C as they stand, with spaces for tabs."""
    lines = text.expandtabs(8).replace("\\", "\\e").replace("-", "\\-").split("\n")
    return (
        ".nf\n"
        + "\n".join(re.sub(r"^([.'])", r"\\&\1", line) or ".sp" for line in lines)
        + "\n.fi\n"
    )


class Pages:
    """The pages of a Header; `version` and `date` stand in their titles.

    others : further Headers, whose calls dibber(7) lists too
    """

    def __init__(self, header, version, date, others=()):
        self.header, self.version, self.date, self.others = header, version, date, others

    def _title(self, name, section):
        release = f"libdibber {self.version}"
        return f'.TH {name} {section} {self.date} "{release}" "Library Functions Manual"\n'

    @staticmethod
    def _paragraphs(texts):
        return [
            (".PP\n" if number else "") + f"{plain(text)}\n" for number, text in enumerate(texts)
        ]

    def call(self, function):
        """The page of a function."""
        same = [
            other.name
            for other in self.header.functions.values()
            if other.section == function.section
        ]
        used = [
            name
            for name in re.findall(r"struct (dib_\w+)", function.prototype)
            if name in self.header.structures
        ]
        returns = function.returns or ("Returns 0 when all went well." if function.errors else "")
        page = [
            self._title(function.name, 3),
            f".SH NAME\n{function.name} \\- {plain(function.purpose)}\n",
            f".SH SYNOPSIS\n.B #include <{self.header.name}>\n.PP\n",
            code(function.prototype),
        ]
        for name in dict.fromkeys(used):
            page += [".PP\n", code(self.header.structures[name])]
        if function.text or function.parameters:
            page.append(".SH DESCRIPTION\n")
        for name, text in function.parameters.items():
            page.append(f".TP\n.I {name}\n{plain(text)}\n")
        if function.parameters and function.text:
            page.append(".PP\n")
        page += self._paragraphs(function.text)
        if returns:
            page.append(f".SH RETURN VALUE\n{plain(returns)}\n")
            if function.errors:
                page.append(
                    "A negative value is an error;\n.BR dib_last_reason (3)\n"
                    "then says in words what was wrong.\n"
                )
        if function.errors:
            page.append(".SH ERRORS\n")
            page += [self._error(error, own) for error, own in function.errors.items()]
        page.append(".SH SEE ALSO\n")
        page += [f".BR {name} (3),\n" for name in sorted(same) if name != function.name]
        return "".join(page) + ".BR dibber (7)\n"

    def _error(self, error, own):
        return f".TP\n.B DIB_ERR_{error}\n{plain(own or self.header.errors[error])}\n"

    def overview(self):
        """dibber(7)."""
        page = [
            self._title("dibber", 7),
            f".SH NAME\ndibber \\- {plain(self.header.purpose)}\n",
            ".SH SYNOPSIS\n.B #include <dibber/dibber.h>\n.PP\n"
            ".nf\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs dibber)\n.fi\n",
            ".SH DESCRIPTION\n",
            *self._paragraphs(
                text for heading, texts in self.header.overview if not heading for text in texts
            ),
            f".SS Cards\n{CARDS}",
        ]
        for heading, texts in self.header.overview:
            if heading:
                page += [f".SS {heading}\n", *self._paragraphs(texts)]
            if heading == "Threads":
                page.append(f".SS The clock of a simulator\n{CLOCK}")
        page.append(".SH FUNCTIONS\n")
        section = None
        for function in (f for h in (self.header, *self.others) for f in h.functions.values()):
            if function.section != section:
                section = function.section
                page.append(f".SS {section}\n")
            page.append(f".TP\n.BR {function.name} (3)\n{plain(function.purpose)}\n")
        page.append(".SH ERRORS\n")
        page += [self._error(error, "") for error in self.header.errors]
        page += [
            f".SH ENVIRONMENT\n{ENVIRONMENT}",
            ".SH SEE ALSO\n.BR dibber (1),\n.BR dibber (4),\n.BR pkg\\-config (1)\n",
        ]
        return "".join(page)

    def write(self, folder):
        for section in ("man3", "man7"):
            (folder / section).mkdir(parents=True, exist_ok=True)
        for function in self.header.functions.values():
            (folder / "man3" / f"{function.name}.3").write_text(self.call(function))


def write(paths, version, date, folder):
    """The pages of all headers; the first one is dibber.h."""
    first = Header(paths[0])
    others = [Header(path, first.errors) for path in paths[1:]]
    for header in (first, *others):
        Pages(header, version, date).write(folder)
    (folder / "man7" / "dibber.7").write_text(Pages(first, version, date, others).overview())


if __name__ == "__main__":
    *paths, version, date, folder = sys.argv[1:]
    write([pathlib.Path(path) for path in paths], version, date, pathlib.Path(folder))
