// Hostile replies for libFuzzer: whatever an adapter prints, its messages are whole and lie within their storage, a reader
// that has read before reads the same, blanks within a line mean nothing, and no field of a page leaves its range.
// Built together with Sources/Protocols as one module, outside of the package.

private let properties = Signal.properties(period: .second / 20)
nonisolated(unsafe) private var usedReader = CANReader()

private func checkPage(_ bytes: ArraySlice<UInt8>) {
  bytes.withUnsafeBufferPointer { bytes in
    BMSPage.read(bytes) { signal, result in
      guard case .value(let value) = result else { return }
      let property = properties[signal.rawValue]
      hold(value.type == property.type && (try? property.rule.accept(value)) == value, "\(property.name) cannot be \(value.text)")
    }
  }
}

private func check(_ reply: [UInt8], from start: Int) {
  var reader = CANReader()
  let outcome = reader.read(reply, from: start)
  hold(usedReader.read(reply, from: start) == outcome, "a used reader reads something else")
  hold(reader.payload.count <= 32 * 0xFFF, "an unbounded payload")
  guard outcome == .messages else { return }
  hold(usedReader.messages == reader.messages && usedReader.payload == reader.payload, "a used reader reads other messages")
  for message in reader.messages {
    hold(message.isComplete && message.start + message.length <= reader.payload.count, "a message is not whole")
    _ = OBDMeaning.of(reader.bytes(of: message))
    checkPage(reader.bytes(of: message))
    for head in [2, 3] where message.length >= head { checkPage(reader.bytes(of: message).dropFirst(head)) }
  }
  hold(usedReader.read(reply[min(start, reply.count)...].filter { $0 != space && $0 != tab }) == .messages, "blanks make a difference")
  hold(usedReader.payload == reader.payload, "blanks make another message")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let reply = Array(UnsafeBufferPointer(start: start, count: count))
  check(reply, from: 0)
  check(reply, from: Int(reply.first ?? 0) % 8)
  for step in SetupStep.allCases {
    var traits = AdapterTraits()
    _ = SetupAnswer(to: step, reply[...], &traits)
    hold((traits.name ?? "").utf8.count <= 200, "an unbounded name")
  }
  hold(printable(reply).utf8.count <= 200, "an unbounded text")
  return 0
}
