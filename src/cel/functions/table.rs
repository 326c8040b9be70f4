//! The table of all functions, in cel-go's notation.
//!
//! One line per function: its overloads, and after `|` what it answers. `A` and `B` stand for any type, the
//! same one wherever they occur in an overload, `C` for one that has an order. A `.` before the name marks
//! a method, whose receiver is the first parameter. `docs/cel.md` is made from it.

/// Functions, under headings that begin with `#`.
pub(in crate::cel) const TABLE: &str = "
    # Standard
    size(string) -> int; size(bytes) -> int; size(list(A)) -> int; size(map(A, B)) -> int | how many characters, bytes, items or entries
    .size(string) -> int; .size(bytes) -> int; .size(list(A)) -> int; .size(map(A, B)) -> int | the same as a method
    type(A) -> type | the type of the value
    dyn(A) -> dyn | the same value, exempt from type checks
    bool(bool) -> bool; bool(string) -> bool | conversion
    bytes(bytes) -> bytes; bytes(string) -> bytes | conversion, as UTF-8
    double(double) -> double; double(int) -> double; double(uint) -> double; double(string) -> double | conversion
    duration(duration) -> duration; duration(string) -> duration | conversion from text such as `1h30m`
    int(int) -> int; int(uint) -> int; int(double) -> int; int(string) -> int; int(timestamp) -> int | conversion; a time becomes seconds since 1970
    uint(uint) -> uint; uint(int) -> uint; uint(double) -> uint; uint(string) -> uint | conversion
    string(string) -> string; string(bool) -> string; string(int) -> string; string(uint) -> string; string(double) -> string; string(bytes) -> string; string(timestamp) -> string; string(duration) -> string | conversion; bytes are read as UTF-8
    timestamp(timestamp) -> timestamp; timestamp(string) -> timestamp; timestamp(int) -> timestamp | conversion from RFC 3339 or from seconds since 1970
    matches(string, string) -> bool; .matches(string, string) -> bool | whether a pattern (RE2) occurs in the text
    .contains(string, string) -> bool | whether the text occurs in it
    .startsWith(string, string) -> bool | whether it begins so
    .endsWith(string, string) -> bool | whether it ends so
    .getFullYear(timestamp) -> int; .getFullYear(timestamp, string) -> int | the year, in UTC or in the named zone
    .getMonth(timestamp) -> int; .getMonth(timestamp, string) -> int | the month, from 0
    .getDayOfYear(timestamp) -> int; .getDayOfYear(timestamp, string) -> int | the day of the year, from 0
    .getDayOfMonth(timestamp) -> int; .getDayOfMonth(timestamp, string) -> int | the day of the month, from 0
    .getDate(timestamp) -> int; .getDate(timestamp, string) -> int | the day of the month, from 1
    .getDayOfWeek(timestamp) -> int; .getDayOfWeek(timestamp, string) -> int | the day of the week, Sunday is 0
    .getHours(timestamp) -> int; .getHours(timestamp, string) -> int; .getHours(duration) -> int | the hour, or whole hours
    .getMinutes(timestamp) -> int; .getMinutes(timestamp, string) -> int; .getMinutes(duration) -> int | the minute, or whole minutes
    .getSeconds(timestamp) -> int; .getSeconds(timestamp, string) -> int; .getSeconds(duration) -> int | the second, or whole seconds
    .getMilliseconds(timestamp) -> int; .getMilliseconds(timestamp, string) -> int; .getMilliseconds(duration) -> int | the milliseconds of the second

    # Optional values
    optional.of(A) -> optional(A) | a value that is there
    optional.none() -> optional(A) | no value
    optional.ofNonZeroValue(A) -> optional(A) | no value for `''`, `0`, `false`, `null` and what is empty
    .hasValue(optional(A)) -> bool | whether it is there
    .value(optional(A)) -> A | the value; fails when it is not there
    .or(optional(A), optional(A)) -> optional(A) | the first that is there
    .orValue(optional(A), A) -> A | the value, or the other one

    # Strings
    .charAt(string, int) -> string | the character at the index; `''` right behind the last
    .indexOf(string, string) -> int; .indexOf(string, string, int) -> int | where the text occurs first, from an offset on; -1 if nowhere
    .lastIndexOf(string, string) -> int; .lastIndexOf(string, string, int) -> int | where the text occurs last; -1 if nowhere
    .join(list(string)) -> string; .join(list(string), string) -> string | the texts, with a separator
    .lowerAscii(string) -> string | ASCII letters in lower case
    .upperAscii(string) -> string | ASCII letters in upper case
    .replace(string, string, string) -> string; .replace(string, string, string, int) -> string | with another text instead, at most so often
    .split(string, string) -> list(string); .split(string, string, int) -> list(string) | the parts between separators; at most so many, all if negative
    .substring(string, int) -> string; .substring(string, int, int) -> string | from an index on, up to another
    .trim(string) -> string | without white space at both ends
    .reverse(string) -> string | last character first
    .format(string, list(dyn)) -> string | `%s %d %f %e %b %x %X %o` filled from the list
    strings.quote(string) -> string | in double quotes, with escapes

    # Lists
    .slice(list(A), int, int) -> list(A) | from an index up to another
    .flatten(list(list(A))) -> list(A); .flatten(list(dyn), int) -> list(dyn) | lists in it dissolved, one level or as many as said
    .sort(list(C)) -> list(C) | in ascending order
    .@sortByAssociatedKeys(list(A), list(C)) -> list(A) | what `sortBy` becomes
    .distinct(list(A)) -> list(A) | each value once
    .reverse(list(A)) -> list(A) | last item first
    .first(list(A)) -> optional(A) | the first item, if there is one
    .last(list(A)) -> optional(A) | the last item, if there is one
    lists.range(int) -> list(int) | the numbers from 0 up to it
    .sum(list(int)) -> int; .sum(list(uint)) -> uint; .sum(list(double)) -> double; .sum(list(duration)) -> duration | the sum
    .min(list(C)) -> C | the least item; fails when there is none
    .max(list(C)) -> C | the greatest item; fails when there is none
    .isSorted(list(C)) -> bool | whether no item is less than the one before
    .indexOf(list(A), A) -> int | where the value is first; -1 if nowhere
    .lastIndexOf(list(A), A) -> int | where the value is last; -1 if nowhere
    lists.setAtIndex(list(A), int, A) -> list(A) | with another item at the index
    lists.insertAtIndex(list(A), int, A) -> list(A) | with one more item before the index
    lists.removeAtIndex(list(A), int) -> list(A) | without the item at the index

    # Maps
    .merge(map(A, B), map(A, B)) -> map(A, B) | entries of both; the right one wins
    .deepMerge(map(string, dyn), map(string, dyn)) -> dyn | the same, inside of maps that both have too
    @merged(list(map(A, B))) -> map(A, B) | what `transformMap` becomes

    # Encodings, hashes and JSON
    base64.encode(bytes) -> string | Base64 of bytes
    base64.decode(string) -> bytes | bytes from Base64, padded or not
    hash.sha256(string) -> bytes | SHA-256
    hash.md5(string) -> bytes | MD5
    hash.fnv64a(string) -> bytes | FNV-1a, 64 bits, big-endian
    json.marshal(A) -> string | the value as JSON
    json.unmarshal(string) -> dyn | a value from JSON; all numbers are double
    random.seededString(int, string) -> string | so many characters of `0-9a-z`, the same ones for the same seed
    random.seededInt(int, int, string) -> int | a number from the first up to the second, the same one for the same seed

    # Regular expressions
    .find(string, string) -> string | the first match of a pattern (RE2), `''` if there is none
    .findAll(string, string) -> list(string); .findAll(string, string, int) -> list(string) | all matches, at most so many unless negative

    # URLs
    url(string) -> kubernetes.URL | an absolute URL or an absolute path
    isURL(string) -> bool | whether `url` takes it
    .getScheme(kubernetes.URL) -> string | the scheme, `''` if there is none
    .getHost(kubernetes.URL) -> string | the host with its port, IPv6 in brackets
    .getHostname(kubernetes.URL) -> string | the host alone, IPv6 without brackets
    .getPort(kubernetes.URL) -> string | the port, `''` if there is none
    .getEscapedPath(kubernetes.URL) -> string | the path with its escapes
    .getQuery(kubernetes.URL) -> map(string, list(string)) | the parameters of the query

    # Quantities
    quantity(string) -> kubernetes.Quantity | a number with a unit, such as `1.5Gi` or `200m`
    isQuantity(string) -> bool | whether `quantity` takes it
    .sign(kubernetes.Quantity) -> int | -1, 0 or 1
    .isInteger(kubernetes.Quantity) -> bool | whether `asInteger` takes it
    .asInteger(kubernetes.Quantity) -> int | as a whole number
    .asApproximateFloat(kubernetes.Quantity) -> double | as a double, which may be less precise
    .add(kubernetes.Quantity, kubernetes.Quantity) -> kubernetes.Quantity; .add(kubernetes.Quantity, int) -> kubernetes.Quantity | the sum
    .sub(kubernetes.Quantity, kubernetes.Quantity) -> kubernetes.Quantity; .sub(kubernetes.Quantity, int) -> kubernetes.Quantity | the difference

    # IP addresses and networks
    ip(string) -> net.IP; .ip(net.CIDR) -> net.IP | an address; the one that a network is written with
    isIP(string) -> bool | whether `ip` takes it
    ip.isCanonical(string) -> bool | whether the address is written in the one usual way
    string(net.IP) -> string; string(net.CIDR) -> string | as text
    .family(net.IP) -> int | 4 or 6
    .isUnspecified(net.IP) -> bool | `0.0.0.0` or `::`
    .isLoopback(net.IP) -> bool | `127.0.0.0/8` or `::1`
    .isLinkLocalMulticast(net.IP) -> bool | `224.0.0.0/24` or `ff02::/16`
    .isLinkLocalUnicast(net.IP) -> bool | `169.254.0.0/16` or `fe80::/10`
    .isGlobalUnicast(net.IP) -> bool | none of the special ones
    cidr(string) -> net.CIDR | a network, such as `10.0.0.0/16`
    isCIDR(string) -> bool | whether `cidr` takes it
    .containsIP(net.CIDR, net.IP) -> bool; .containsIP(net.CIDR, string) -> bool | whether the address lies in the network
    .containsCIDR(net.CIDR, net.CIDR) -> bool; .containsCIDR(net.CIDR, string) -> bool | whether the whole other network lies in it
    .masked(net.CIDR) -> net.CIDR | with zeros behind the prefix
    .prefixLength(net.CIDR) -> int | the bits of the prefix

    # Versions
    semver(string) -> kubernetes.Semver; semver(string, bool) -> kubernetes.Semver | a semantic version; with `true` also `v1.2` or `01.2`
    isSemver(string) -> bool; isSemver(string, bool) -> bool | whether `semver` takes it
    .major(kubernetes.Semver) -> int | the first number
    .minor(kubernetes.Semver) -> int | the second number
    .patch(kubernetes.Semver) -> int | the third number
    .isGreaterThan(kubernetes.Semver, kubernetes.Semver) -> bool; .isGreaterThan(kubernetes.Quantity, kubernetes.Quantity) -> bool | whether it is greater, of versions and of quantities
    .isLessThan(kubernetes.Semver, kubernetes.Semver) -> bool; .isLessThan(kubernetes.Quantity, kubernetes.Quantity) -> bool | whether it is less
    .compareTo(kubernetes.Semver, kubernetes.Semver) -> int; .compareTo(kubernetes.Quantity, kubernetes.Quantity) -> int | -1, 0 or 1

    # Rendering
    omit() -> dyn | removes the field, the map's entry or the list's item that it stands for
    @newCondition(string, string, string, string) -> condition | what `runtime.newCondition` becomes
";

/// Macros, which are no functions: what they take is an expression and not its value.
pub(in crate::cel) const MACROS: &[(&str, &str)] = &[
    ("has(a.b)", "whether the field is there"),
    ("list.all(x, cond)", "whether the condition holds for all items, or keys of a map"),
    ("list.exists(x, cond)", "whether it holds for one at least"),
    ("list.exists_one(x, cond)", "whether it holds for exactly one; also `existsOne`"),
    ("list.map(x, expr)", "the expression for each item"),
    ("list.map(x, cond, expr)", "the expression for each item for which the condition holds"),
    ("list.filter(x, cond)", "the items for which the condition holds"),
    ("list.sortBy(x, key)", "the items in the order of their keys"),
    ("range.all(k, v, cond)", "the same with index and item of a list, or key and value of a map"),
    ("range.exists(k, v, cond)", "the same with two variables"),
    ("range.existsOne(k, v, cond)", "the same with two variables; also `exists_one`"),
    ("range.transformList(k, v, expr)", "a list of the expression for each entry"),
    ("range.transformList(k, v, cond, expr)", "the same for the entries for which the condition holds"),
    ("range.transformMap(k, v, expr)", "a map with the same keys, or indices, and the expression as values"),
    ("range.transformMap(k, v, cond, expr)", "the same for the entries for which the condition holds"),
    ("range.transformMapEntry(k, v, {key: value})", "a map of new entries; a key twice is an error"),
    (
        "range.transformMapEntry(k, v, cond, {key: value})",
        "the same for the entries for which the condition holds",
    ),
    ("cel.bind(x, value, expr)", "the expression, in which the name stands for the value"),
    ("opt.optMap(x, expr)", "an optional of the expression, if the value is there"),
    ("opt.optFlatMap(x, expr)", "the expression, which is optional itself, if the value is there"),
    (
        "runtime.newCondition({type: t, status: s, reason: r, message: m})",
        "a condition of the instance; the status is True, False or Unknown, reason and message may be left out; in `status.conditions` only",
    ),
    (
        "runtime.condition(schema, 'Ready')",
        "a condition that the engine itself writes: Ready, InstanceManaged, GraphResolved or ResourcesReady; in `status.conditions` only",
    ),
];
