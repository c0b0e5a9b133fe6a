// Converts between libdbus messages and values. libdbus has already validated received messages, but this file also checks the type of each
// value before it reads the value. Names and paths are checked before they are passed to libdbus, which aborts the process on an invalid
// one.

import CDBus

/// A libdbus message, released at the end of its lifetime.
struct RawMessage: ~Copyable {
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }
  deinit { dbus_message_unref(pointer) }
}

/// The maximum nesting depth of values; the specification allows 64 in total.
private let maxDepth = 64

extension DBusMessage {
  /// Decodes a received message. Throws `malformed` if it is invalid.
  init(_ raw: OpaquePointer) throws(DBusError) {
    let kind: Kind
    switch dbus_message_get_type(raw) {
    case DBUS_MESSAGE_TYPE_METHOD_CALL: kind = .call
    case DBUS_MESSAGE_TYPE_METHOD_RETURN: kind = .reply
    case DBUS_MESSAGE_TYPE_ERROR: kind = .error(dbus_message_get_error_name(raw).map { String(cString: $0) } ?? "")
    case DBUS_MESSAGE_TYPE_SIGNAL: kind = .signal
    case let other: throw .malformed("a message of type \(other)")
    }
    self.init(kind: kind)
    destination = dbus_message_get_destination(raw).map { String(cString: $0) }
    sender = dbus_message_get_sender(raw).map { String(cString: $0) }
    path = dbus_message_get_path(raw).map { String(cString: $0) }
    interface = dbus_message_get_interface(raw).map { String(cString: $0) }
    member = dbus_message_get_member(raw).map { String(cString: $0) }
    serial = dbus_message_get_serial(raw)
    replySerial = dbus_message_get_reply_serial(raw)
    var iterator = DBusMessageIter()
    if dbus_message_iter_init(raw, &iterator) != 0 { body = try DBusValue.all(&iterator, depth: 0) }
  }

  /// Encodes the message for libdbus. Throws `unsendable` if this is impossible.
  func raw() throws(DBusError) -> RawMessage {
    try check(destination, dbus_validate_bus_name, "bus name")
    try check(path, dbus_validate_path, "path")
    try check(interface, dbus_validate_interface, "interface")
    try check(member, dbus_validate_member, "member")
    let pointer: OpaquePointer?
    switch kind {
    case .call:
      guard let path, let member else { throw .unsendable("a call without a path or a member") }
      pointer = dbus_message_new_method_call(destination, path, interface, member)
      // By default, a call does not start a service that the user has stopped.
      if let pointer {
        dbus_message_set_auto_start(pointer, startsService ? 1 : 0)
        dbus_message_set_no_reply(pointer, expectsReply ? 0 : 1)
      }
    case .signal:
      guard let path, let interface, let member else { throw .unsendable("a signal without a path, interface or member") }
      pointer = dbus_message_new_signal(path, interface, member)
    case .reply: pointer = dbus_message_new(DBUS_MESSAGE_TYPE_METHOD_RETURN)
    case .error(let name):
      try check(name, dbus_validate_error_name, "error name")
      pointer = dbus_message_new(DBUS_MESSAGE_TYPE_ERROR)
      if let pointer { dbus_message_set_error_name(pointer, name) }
    }
    guard let pointer else { throw .unsendable("no memory for a message") }
    let message = RawMessage(owning: pointer)
    if kind != .call, let destination { dbus_message_set_destination(pointer, destination) }
    if replySerial != 0 { dbus_message_set_reply_serial(pointer, replySerial) }
    var iterator = DBusMessageIter()
    dbus_message_iter_init_append(pointer, &iterator)
    for value in body { try value.append(to: &iterator) }
    return message
  }
}

private func check(
  _ name: String?, _ validate: (UnsafePointer<CChar>?, UnsafeMutablePointer<CDBus.DBusError>?) -> dbus_bool_t, _ what: String
) throws(DBusError) {
  guard let name else { return }
  guard !name.utf8.contains(0), validate(name, nil) != 0 else { throw .unsendable("\(what) \"\(name)\"") }
}

// The type codes of the specification; their macros are character literals, which are not imported.
private let byteCode = code("y"), boolCode = code("b"), int16Code = code("n"), uint16Code = code("q"), int32Code = code("i")
private let uint32Code = code("u"), int64Code = code("x"), uint64Code = code("t"), doubleCode = code("d"), stringCode = code("s")
private let pathCode = code("o"), signatureCode = code("g"), arrayCode = code("a"), structureCode = code("r")
private let entryCode = code("e"), variantCode = code("v"), descriptorCode = code("h")

private func code(_ letter: Unicode.Scalar) -> CInt { CInt(letter.value) }

// MARK: Reading

extension DBusValue {
  /// Reads all values from here to the end of the container.
  fileprivate static func all(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> [DBusValue] {
    var values: [DBusValue] = []
    while dbus_message_iter_get_arg_type(&iterator) != 0 {
      values.append(try DBusValue(&iterator, depth: depth))
      dbus_message_iter_next(&iterator)
    }
    return values
  }

  private init(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) {
    guard depth < maxDepth else { throw .malformed("values nested deeper than \(maxDepth)") }
    switch dbus_message_iter_get_arg_type(&iterator) {
    case byteCode: self = .byte(basic(&iterator, 0))
    case boolCode: self = .bool(basic(&iterator, dbus_bool_t(0)) != 0)
    case int16Code: self = .int16(basic(&iterator, 0))
    case uint16Code: self = .uint16(basic(&iterator, 0))
    case int32Code: self = .int32(basic(&iterator, 0))
    case uint32Code: self = .uint32(basic(&iterator, 0))
    case int64Code: self = .int64(basic(&iterator, 0))
    case uint64Code: self = .uint64(basic(&iterator, 0))
    case doubleCode: self = .double(basic(&iterator, 0))
    case stringCode: self = .string(text(&iterator))
    case pathCode: self = .path(text(&iterator))
    case signatureCode: self = .signature(text(&iterator))
    case descriptorCode: self = .descriptor(DBusDescriptor(owning: basic(&iterator, -1)))
    case variantCode: self = .variant(try DBusValue.inner(&iterator, depth).first ?? .bytes([]))
    case structureCode: self = .structure(try DBusValue.inner(&iterator, depth))
    case entryCode:
      let pair = try DBusValue.inner(&iterator, depth)
      guard pair.count == 2 else { throw .malformed("a dictionary entry of \(pair.count) values") }
      self = .entry(pair[0], pair[1])
    case arrayCode where dbus_message_iter_get_element_type(&iterator) == byteCode:
      var inner = DBusMessageIter()
      dbus_message_iter_recurse(&iterator, &inner)
      var start: UnsafePointer<UInt8>?
      var count: CInt = 0
      if dbus_message_iter_get_arg_type(&inner) != 0 { dbus_message_iter_get_fixed_array(&inner, &start, &count) }
      self = .bytes(Array(UnsafeBufferPointer(start: start, count: Int(count))))
    case arrayCode:
      guard let signature = dbus_message_iter_get_signature(&iterator) else { throw .malformed("an array without a type") }
      defer { dbus_free(signature) }
      self = .array(of: String(cString: signature + 1), try DBusValue.inner(&iterator, depth))
    case let other: throw .malformed("a value of type \(other)")
    }
  }

  private static func inner(_ iterator: inout DBusMessageIter, _ depth: Int) throws(DBusError) -> [DBusValue] {
    var inner = DBusMessageIter()
    dbus_message_iter_recurse(&iterator, &inner)
    return try all(&inner, depth: depth + 1)
  }
}

private func basic<Number: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ initial: Number) -> Number {
  var value = initial
  dbus_message_iter_get_basic(&iterator, &value)
  return value
}

private func text(_ iterator: inout DBusMessageIter) -> String {
  var text: UnsafePointer<CChar>?
  dbus_message_iter_get_basic(&iterator, &text)
  return text.map { String(cString: $0) } ?? ""
}

// MARK: Writing

extension DBusValue {
  fileprivate func append(to iterator: inout DBusMessageIter) throws(DBusError) {
    switch self {
    case .byte(let value): try appendBasic(value, byteCode, &iterator)
    case .bool(let value): try appendBasic(dbus_bool_t(value ? 1 : 0), boolCode, &iterator)
    case .int16(let value): try appendBasic(value, int16Code, &iterator)
    case .uint16(let value): try appendBasic(value, uint16Code, &iterator)
    case .int32(let value): try appendBasic(value, int32Code, &iterator)
    case .uint32(let value): try appendBasic(value, uint32Code, &iterator)
    case .int64(let value): try appendBasic(value, int64Code, &iterator)
    case .uint64(let value): try appendBasic(value, uint64Code, &iterator)
    case .double(let value): try appendBasic(value, doubleCode, &iterator)
    case .string(let value):
      try check(value, dbus_validate_utf8, "text")
      try appendBasic(value, stringCode, &iterator)
    case .path(let value):
      try check(value, dbus_validate_path, "path")
      try appendBasic(value, pathCode, &iterator)
    case .signature(let value):
      guard dbus_signature_validate(value, nil) != 0 else { throw .unsendable("signature \"\(value)\"") }
      try appendBasic(value, signatureCode, &iterator)
    case .descriptor(let value):
      guard value.borrowed >= 0 else { throw .unsendable("a file descriptor that is already closed") }
      try appendBasic(value.borrowed, descriptorCode, &iterator)
    case .bytes(let bytes):
      try appendContainer(arrayCode, "y", &iterator) { (inner) throws(DBusError) in
        let isAppended = bytes.withUnsafeBufferPointer { buffer in
          var start = buffer.baseAddress
          return buffer.isEmpty ? 1 : dbus_message_iter_append_fixed_array(&inner, byteCode, &start, CInt(buffer.count))
        }
        if isAppended == 0 { throw .unsendable("no memory for \(bytes.count) bytes") }
      }
    case .array(let element, let values):
      guard dbus_signature_validate("a\(element)", nil) != 0 else { throw .unsendable("signature \"a\(element)\"") }
      guard let mismatch = values.first(where: { $0.signature != element }) else {
        return try appendContainer(arrayCode, element, &iterator) { (inner) throws(DBusError) in
          for value in values { try value.append(to: &inner) }
        }
      }
      throw .unsendable("\(mismatch.signature) in an array of \(element)")
    case .entry(let key, let value):
      try appendContainer(entryCode, nil, &iterator) { (inner) throws(DBusError) in
        try key.append(to: &inner)
        try value.append(to: &inner)
      }
    case .structure(let members):
      try appendContainer(structureCode, nil, &iterator) { (inner) throws(DBusError) in
        for member in members { try member.append(to: &inner) }
      }
    case .variant(let value):
      try appendContainer(variantCode, value.signature, &iterator) { (inner) throws(DBusError) in try value.append(to: &inner) }
    }
  }
}

private func appendBasic(_ value: some BitwiseCopyable, _ code: CInt, _ iterator: inout DBusMessageIter) throws(DBusError) {
  var value = value
  guard dbus_message_iter_append_basic(&iterator, code, &value) != 0 else { throw .unsendable("no memory for a value") }
}

private func appendBasic(_ text: String, _ code: CInt, _ iterator: inout DBusMessageIter) throws(DBusError) {
  let isAppended = text.withCString { start in
    var start: UnsafePointer<CChar>? = start
    return dbus_message_iter_append_basic(&iterator, code, &start)
  }
  guard isAppended != 0 else { throw .unsendable("no memory for a text") }
}

/// Appends a container whose elements `fill` appends.
private func appendContainer(
  _ code: CInt, _ signature: String?, _ iterator: inout DBusMessageIter, _ fill: (inout DBusMessageIter) throws(DBusError) -> Void
) throws(DBusError) {
  var inner = DBusMessageIter()
  guard dbus_message_iter_open_container(&iterator, code, signature, &inner) != 0 else { throw .unsendable("no memory for a container") }
  do throws(DBusError) {
    try fill(&inner)
  } catch {
    dbus_message_iter_abandon_container(&iterator, &inner)
    throw error
  }
  guard dbus_message_iter_close_container(&iterator, &inner) != 0 else { throw .unsendable("no memory for a container") }
}
