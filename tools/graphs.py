"""Strongly connected components of a graph: the circles of imports, includes, calls and logic."""

# SPDX-License-Identifier: BSD-2-Clause


def components(edges):
    """Strongly connected components, each after those that it leads to.

    Tarjan, "Depth-first search and linear graph algorithms" (SIAM J. Comput. 1, 1972), without
    recursion.

    edges : {node: nodes that follow it}; a node without an entry has no followers

    Returns lists of nodes. The last node of a list is the one that the search reached first.
    """
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, left = work[-1]
            for following in left:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    on_stack.add(following)
                    work.append((following, iter(edges.get(following, ()))))
                    break
                if following in on_stack:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    found.append(component)
    return found
