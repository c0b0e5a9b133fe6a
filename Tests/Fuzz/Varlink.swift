// Fuzzes the framing and the decoding of Varlink calls and replies. The messages do not depend on how the stream was split, and a decoded
// call or reply is unchanged when it is encoded and decoded again. Built together with Sources/Protocols and Sources/Varlink as one
// module, outside the package.

/// The messages of a stream that arrives in chunks of this size, and whether one exceeds the limit.
private func messages(_ stream: ArraySlice<UInt8>, chunkSize: Int, limit: Int) -> (complete: [[UInt8]], isTooLong: Bool) {
  var framing = VarlinkFraming(limit: limit)
  var complete: [[UInt8]] = []
  var rest = stream
  do {
    while !rest.isEmpty {
      framing.append(rest.prefix(chunkSize))
      rest = rest.dropFirst(chunkSize)
      while let message = try framing.next() { complete.append(message) }
    }
  } catch { return (complete, true) }
  return (complete, false)
}

private func check<P: VarlinkParameters & Equatable>(_ call: VarlinkCall, _ type: P.Type) {
  guard let parameters = try? call.parameters(as: type) else { return }
  do {
    let encoded = try VarlinkCall.message(call.method, parameters, more: call.more, oneway: call.oneway)
    require(try VarlinkCall(encoded.dropLast()).parameters(as: type) == parameters, "the call changes when it is encoded")
  } catch { fatalError("the decoded call cannot be encoded: \(error)") }
}

private func check<P: VarlinkParameters & Equatable>(_ reply: VarlinkReply, _ type: P.Type) -> P? {
  guard let parameters = try? reply.parameters(as: type) else { return nil }
  do {
    let encoded = VarlinkReply.message(parameters, continues: reply.continues)
    require(try VarlinkReply(encoded.dropLast()).parameters(as: type) == parameters, "the reply changes when it is encoded")
  } catch { fatalError("the decoded reply cannot be encoded: \(error)") }
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
  let whole = messages(bytes[1...], chunkSize: bytes.count, limit: limit)
  let split = messages(bytes[1...], chunkSize: Int(first & 0x7F) + 1, limit: limit)
  require(whole == split, "the messages depend on how the stream is split")
  for message in whole.complete { check(message) }
  check(Array(bytes[1...]))
  return 0
}
