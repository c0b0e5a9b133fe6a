// Hostile peers for libFuzzer: whatever bytes come over the socket, a stream gives the same messages however it was cut,
// a call or reply is taken or refused, and what was taken says the same after it was written and read again.
// Built together with Sources/Protocols as one module, outside of the package.

/// The messages of a stream that comes in pieces of this size, and whether it ended in an error.
private func messages(_ stream: ArraySlice<UInt8>, pieces: Int, limit: Int) -> (whole: [[UInt8]], isTooLong: Bool) {
  var framing = VarlinkFraming(limit: limit)
  var found: [[UInt8]] = []
  var rest = stream
  do {
    while !rest.isEmpty {
      framing.append(rest.prefix(pieces))
      rest = rest.dropFirst(pieces)
      while let message = try framing.next() { found.append(message) }
    }
  } catch { return (found, true) }
  return (found, false)
}

private func check<P: VarlinkParameters & Equatable>(_ call: VarlinkCall, _ type: P.Type) {
  guard let parameters = try? call.parameters(as: type) else { return }
  do {
    let again = try VarlinkCall.message(call.method, parameters, more: call.more, oneway: call.oneway)
    hold(try VarlinkCall(again.dropLast()).parameters(as: type) == parameters, "a call changes on the wire")
  } catch { fatalError("a call that was read cannot be written: \(error)") }
}

private func check<P: VarlinkParameters & Equatable>(_ reply: VarlinkReply, _ type: P.Type) -> P? {
  guard let parameters = try? reply.parameters(as: type) else { return nil }
  do {
    let again = VarlinkReply.message(parameters, continues: reply.continues)
    hold(try VarlinkReply(again.dropLast()).parameters(as: type) == parameters, "a reply changes on the wire")
  } catch { fatalError("a reply that was read cannot be written: \(error)") }
  return parameters
}

private func check(_ message: [UInt8]) {
  if let call = try? VarlinkCall(message) {
    check(call, NoParameters.self)
    check(call, Contract.AnyDevice.self)
    check(call, Contract.Get.Parameters.self)
    check(call, Contract.Set.Parameters.self)
    check(call, Contract.Call.Parameters.self)
    check(call, Contract.Watch.Parameters.self)
    check(call, Contract.Drive.Parameters.self)
    check(call, VarlinkService.GetInterfaceDescription.Parameters.self)
  }
  if let reply = try? VarlinkReply(message) {
    _ = check(reply, Contract.Status.Result.self)
    _ = check(reply, Contract.Call.Result.self)
    _ = check(reply, Contract.Watch.Result.self)
    for schema in check(reply, Contract.Describe.Result.self)?.schemas ?? [] {
      _ = schema.properties.map(Property.init)
      _ = schema.actions.map(Action.init)
    }
  }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let first = bytes.first else { return 0 }
  let limit = first & 0x80 == 0 ? VarlinkFraming.callLimit : 40
  let whole = messages(bytes[1...], pieces: bytes.count, limit: limit)
  let cut = messages(bytes[1...], pieces: Int(first & 0x7F) + 1, limit: limit)
  hold(whole == cut, "the cuts of a stream show in its messages")
  for message in whole.whole { check(message) }
  check(Array(bytes[1...]))
  return 0
}
