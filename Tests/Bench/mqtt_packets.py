"""The packets of MQTT on the wire, for relays and subscribers. Source: MQTT 5.0, sections 2 and 3; MQTT 3.1.1."""


def packets(buffer):
    """Takes the complete packets from the buffer: the first byte, and the rest after the length."""
    position, found = 0, []
    while position + 2 <= len(buffer):
        length, shift, begin = 0, 0, position + 1
        while begin < len(buffer):
            byte = buffer[begin]
            length |= (byte & 0x7F) << shift
            shift, begin = shift + 7, begin + 1
            if byte < 0x80:
                break
        else:
            break
        if begin + length > len(buffer):
            break
        found.append((buffer[position], bytes(buffer[begin:begin + length])))
        position = begin + length
    del buffer[:position]
    return found


# The sizes of the properties of a PUBLISH with a fixed size.
FIXED = {0x01: 1, 0x02: 4, 0x23: 2}


def published(first, body, is_current, aliases):
    """Topic, packet ID and payload of a PUBLISH."""
    position = 2 + (body[0] << 8 | body[1])
    topic, identifier = body[2:position], 0
    if first & 0x06:
        identifier, position = body[position] << 8 | body[position + 1], position + 2
    if is_current:
        length, position = body[position], position + 1
        if length >= 0x80:
            length, position = (length & 0x7F) | body[position] << 7, position + 1
        finish = position + length
        while position < finish:
            kind = body[position]
            if kind == 0x23:
                alias = body[position + 1] << 8 | body[position + 2]
                if topic:
                    aliases[alias] = topic
                topic = topic or aliases[alias]
            if kind in FIXED:
                position += 1 + FIXED[kind]
            elif kind == 0x0B:
                position += 2
                while body[position - 1] >= 0x80:
                    position += 1
            else:  # strings and binary data; the user property has two
                position += 1
                for _ in range(2 if kind == 0x26 else 1):
                    position += 2 + (body[position] << 8 | body[position + 1])
    return topic, identifier, body[position:]


def packet(first, body):
    length, size = len(body), b""
    while True:
        length, digit = length >> 7, length & 0x7F
        size += bytes([digit | (0x80 if length else 0)])
        if not length:
            return bytes([first]) + size + body
