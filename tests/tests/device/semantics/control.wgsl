let at = global_id.x;
let x = u[at];
var sum = 0u;
for (var i = 0u; i < x % 13u; i += 1u) {
    if (i % 3u == 1u) {
        continue;
    }
    for (var j = i; ; j += 2u) {
        if (j > 9u) {
            break;
        }
        switch (j + x) % 7u {
            case 0u, 3u: {
                sum += j;
            }
            case 1u: {
                if (i > 4u) {
                    break;
                }
                sum = sum * 3u;
            }
            case 5u: {
                continue;
            }
            default: {
                sum ^= 0x55u;
            }
        }
    }
}
put(0u, sum);
var n = x % 1000u + 1u;
var steps = 0u;
while (n != 1u && steps < 300u) {
    n = select(n / 2u, 3u * n + 1u, n % 2u == 1u);
    steps += 1u;
}
put(1u, steps);
var rounds = 0u;
loop {
    rounds += 2u;
    if (rounds == x % 5u) {
        continue;
    }
    rounds += 1u;
    continuing {
        rounds += x % 3u;
        break if rounds > 20u + x % 7u;
    }
}
put(2u, rounds);
var touched = 0u;
if (x % 2u == 0u && note(&touched)) {
    touched += 10u;
}
if (x % 3u == 0u || note(&touched)) {
    touched += 100u;
}
put(3u, touched);
put(4u, early(x % 11u));
put(5u, early(x % 17u) * early(x % 5u));
