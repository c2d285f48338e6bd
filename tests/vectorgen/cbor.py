"""Vectors of step 1: the encoding alone, written by hand byte for byte."""

from tests.vectorgen.catalogue import Body, fails, passes


def _good(text: str, result: str) -> Body:
    return Body(data=bytes.fromhex(text), result=result)


def _bad(text: str) -> Body:
    return Body(data=bytes.fromhex(text))


# --- what must be accepted


@passes("cbor", "1.1")
def cbor_bytes() -> Body:
    """Three bytes fill the input exactly."""
    return _good("43010203", "h'010203'")


@passes("cbor", "1.1")
def cbor_array_empty() -> Body:
    """Nothing is also a list."""
    return _good("80", "[]")


@passes("cbor", "1.1")
def cbor_array_mixed() -> Body:
    """Every type of the encoding in one array."""
    return _good(
        "890120416162c3a4f4f5f6a080",
        "[1, -1, h'61', \"\\u00e4\", false, true, null, {}, []]",
    )


@passes("cbor", "1.2")
def cbor_heads_shortest() -> Body:
    """The first number of each length of head: 0, 24, 256, 65536, 4294967296."""
    return _good("850018181901001a000100001b0000000100000000", "[0, 24, 256, 65536, 4294967296]")


@passes("cbor", "1.2")
def cbor_heads_greatest() -> Body:
    """The last number of each length of head but the longest."""
    return _good("841718ff19ffff1affffffff", "[23, 255, 65535, 4294967295]")


@passes("cbor", "1.2")
def cbor_bytes_24() -> Body:
    """A string of 24 bytes needs a head of two."""
    return _good("5818" + "ab" * 24, f"h'{'ab' * 24}'")


@passes("cbor", "1.3")
def cbor_integer_greatest() -> Body:
    """2**64 - 1 is the greatest integer."""
    return _good("1bffffffffffffffff", "18446744073709551615")


@passes("cbor", "1.3")
def cbor_integer_least() -> Body:
    """-2**63 is the least integer."""
    return _good("3b7fffffffffffffff", "-9223372036854775808")


@passes("cbor", "1.3")
def cbor_simple_values() -> Body:
    """False, true and null are the only simple values."""
    return _good("83f4f5f6", "[false, true, null]")


@passes("cbor", "1.4")
def cbor_map_keys() -> Body:
    """Keys 0 and 23 are the first and the last there may be."""
    return _good("a200f517f4", "{0: true, 23: false}")


@passes("cbor", "1.5")
def cbor_depth_16_arrays() -> Body:
    """Sixteen arrays inside each other are as deep as it may be."""
    return _good("81" * 16 + "00", "[" * 16 + "0" + "]" * 16)


@passes("cbor", "1.5")
def cbor_depth_16_maps() -> Body:
    """Maps count like arrays."""
    return _good("a100" * 16 + "00", "{0: " * 16 + "0" + "}" * 16)


@passes("cbor", "1.6")
def cbor_text_utf8() -> Body:
    """Text of one, two, three and four bytes a character."""
    return _good("6a61c3a4e282acf09f8eb2", '"a\\u00e4\\u20ac\\ud83c\\udfb2"')


# --- 1.1 length


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-bytes", field="bytes behind")
def cbor_trailing_byte() -> Body:
    """One byte follows the item."""
    return _bad("4301020300")


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-bytes", field="end of input")
def cbor_bytes_cut() -> Body:
    """The input ends inside a byte string."""
    return _bad("430102")


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-bytes", field="whole input")
def cbor_nothing() -> Body:
    """No item at all."""
    return _bad("")


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-bytes", field="length")
def cbor_bytes_huge() -> Body:
    """A length of 2**63 must fail before anything is allocated."""
    return _bad("5b8000000000000000010203")


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-array-empty", field="count")
def cbor_array_huge() -> Body:
    """Four thousand million elements are declared and none is there."""
    return _bad("9affffffff")


@fails("cbor", "1.1", "integrity.cbor-length", differs_from="cbor-heads-shortest", field="end")
def cbor_head_cut() -> Body:
    """The input ends inside the head of the last element."""
    return _bad("850018181901001a000100001b00000001000000")


# --- 1.2 form


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-heads-shortest", field="a head")
def cbor_integer_23_in_two_bytes() -> Body:
    """23 fits the first byte; a second spelling would make two encodings of one value."""
    return _bad("850018171901001a000100001b0000000100000000")


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-heads-shortest", field="a head")
def cbor_integer_255_in_three_bytes() -> Body:
    """255 fits two bytes."""
    return _bad("850018181900ff1a000100001b0000000100000000")


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-heads-shortest", field="a head")
def cbor_integer_32_bits_in_nine_bytes() -> Body:
    """4294967295 fits five bytes."""
    return _bad("850018181901001a000100001b00000000ffffffff")


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-bytes", field="head")
def cbor_bytes_long_head() -> Body:
    """Lengths too are in shortest form."""
    return _bad("5803010203")


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-bytes", field="head")
def cbor_bytes_indefinite() -> Body:
    """A byte string in pieces, until a break."""
    return _bad("5f43010203ff")


@fails("cbor", "1.2", "integrity.cbor-form", differs_from="cbor-array-empty", field="head")
def cbor_array_indefinite() -> Body:
    """An array that ends with a break."""
    return _bad("9fff")


# --- 1.3 type


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-bytes", field="a tag before it")
def cbor_tag() -> Body:
    """A tag (2, big number) before three bytes."""
    return _bad("c243010203")


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-simple-values", field="a value")
def cbor_undefined() -> Body:
    """Undefined is no value of this encoding."""
    return _bad("83f4f5f7")


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-simple-values", field="a value")
def cbor_simple_16() -> Body:
    """Simple value 16 has no meaning."""
    return _bad("83f4f5f0")


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-simple-values", field="a value")
def cbor_float_16() -> Body:
    """A floating-point number of 16 bits."""
    return _bad("83f4f5f93c00")


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-simple-values", field="a value")
def cbor_float_64() -> Body:
    """A floating-point number of 64 bits."""
    return _bad("83f4f5fb3ff0000000000000")


@fails("cbor", "1.3", "integrity.cbor-type", differs_from="cbor-integer-least", field="integer")
def cbor_integer_too_low() -> Body:
    """-2**63 - 1 is below the least integer."""
    return _bad("3b8000000000000000")


# --- 1.4 keys


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="second key")
def cbor_key_24() -> Body:
    """24 is beyond the last key."""
    return _bad("a200f51818f4")


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="second key")
def cbor_key_twice() -> Body:
    """Two values under key 0: which one counts would be a reader's whim."""
    return _bad("a200f500f4")


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="order of keys")
def cbor_keys_descending() -> Body:
    """Key 23 stands before key 0."""
    return _bad("a217f400f5")


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="first key")
def cbor_key_negative() -> Body:
    """A negative integer is no key."""
    return _bad("a220f517f4")


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="first key")
def cbor_key_text() -> Body:
    """Text is no key."""
    return _bad("a26130f517f4")


@fails("cbor", "1.4", "integrity.cbor-keys", differs_from="cbor-map-keys", field="first key")
def cbor_key_false() -> Body:
    """False is no key, even where a language takes it for 0."""
    return _bad("a2f4f517f4")


# --- 1.5 depth


@fails("cbor", "1.5", "integrity.cbor-depth", differs_from="cbor-depth-16-arrays", field="depth")
def cbor_depth_17_arrays() -> Body:
    """One array too deep."""
    return _bad("81" * 17 + "00")


@fails("cbor", "1.5", "integrity.cbor-depth", differs_from="cbor-depth-16-maps", field="depth")
def cbor_depth_17_maps() -> Body:
    """One map too deep."""
    return _bad("a100" * 17 + "00")


@fails("cbor", "1.5", "integrity.cbor-depth", differs_from="cbor-depth-16-arrays", field="depth")
def cbor_depth_100000() -> Body:
    """A hundred thousand arrays must be refused, not followed."""
    return _bad("81" * 100_000 + "00")


# --- 1.6 text


@fails("cbor", "1.6", "integrity.cbor-text", differs_from="cbor-text-utf8", field="last character")
def cbor_text_cut_character() -> Body:
    """The last character lacks its last byte."""
    return _bad("6961c3a4e282acf09f8e")


@fails("cbor", "1.6", "integrity.cbor-text", differs_from="cbor-text-utf8", field="a character")
def cbor_text_surrogate() -> Body:
    """A surrogate half is no character."""
    return _bad("6a61c3a4eda080f09f8eb2")


@fails("cbor", "1.6", "integrity.cbor-text", differs_from="cbor-text-utf8", field="a character")
def cbor_text_overlong() -> Body:
    """NUL spelt with two bytes."""
    return _bad("6a61c080e282acf09f8eb2")
