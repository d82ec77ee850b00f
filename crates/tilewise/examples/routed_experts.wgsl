// The body of a kernel of routed_experts.rs. One invocation sorts all tokens by their experts:
// short, and slow for many.

let tokens = scores_shape[0];
var next: array<u32, EXPERTS>;
for (var t = 0u; t < tokens; t++) {
    var best = 0u;
    for (var e = 1u; e < EXPERTS; e++) {
        if scores[t * EXPERTS + e] > scores[t * EXPERTS + best] { best = e; }
    }
    var second = select(0u, 1u, best == 0);
    for (var e = second + 1; e < EXPERTS; e++) {
        if e != best && scores[t * EXPERTS + e] > scores[t * EXPERTS + second] { second = e; }
    }
    place[2 * t] = best; // the expert, until all are counted
    place[2 * t + 1] = second;
    share[t] = 1 / (1 + exp(scores[t * EXPERTS + second] - scores[t * EXPERTS + best]));
    next[best]++;
    next[second]++;
}
var end = 0u;
for (var e = 0u; e < EXPERTS; e++) {
    let rows = next[e];
    next[e] = end;
    end += rows;
    ends[e] = end;
}
for (var i = 0u; i < 2 * tokens; i++) {
    let e = place[i];
    token[next[e]] = i / 2;
    place[i] = next[e];
    next[e]++;
}
