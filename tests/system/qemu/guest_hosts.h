/* Two hosts in one guest: two network namespaces with nothing between them but one TCP connection,
 * which a third process carries from one to the other. */

/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef DIBBER_GUEST_HOSTS_H
#define DIBBER_GUEST_HOSTS_H

/* Run `PROGRAM listen PORT uri0` in one namespace and `PROGRAM connect HOST:PORT uri1` in the
 * other. Returns the exit codes, that of the first in bits 7:0 and that of the second in bits 15:8;
 * ff: it was killed. */
unsigned int guest_run_on_hosts(const char *path, const char *uri0, const char *uri1);

#endif
