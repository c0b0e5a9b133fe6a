// Fuzzes the ELComm machine and its decoder with an arbitrary board. The machine sends only commands that a board has, its buffers are
// bounded, and the total distance never decreases. Built together with Sources/Protocols as one module, outside the package.

private struct ELCommFuzzSession: FuzzSession {
  static let firstStep: UInt8 = 0x80
  static var steps: [FuzzStep<Self>] {
    linkSteps + [
      .step { $0.set(.buzzer, .bool(true)) }, .step { $0.set(.buzzer, .bool(false)) }, .withArgument { $0.buzz($1) }, .cancel,
      .step { $0.completeSendAndStores() }, .step { $0.completeSendAndStores(failure: "busy") }, .step { $0.restart() },
      .step { $0.set(.name, .string(String(decoding: $0.state.pending, as: UTF8.self))) }, .step { $0.stop() },
    ]
  }
  static let maxStringLength = 300
  static let storedKeys = ["distance", "name", "dialect"]

  private let options: UInt8
  var state: FuzzState<ELCommMachine>
  private var totalDistance = 0.0
  /// The keys of the stores that are not completed yet.
  private var openStores: [String] = []

  init?(options: UInt8) {
    var values: [String: Value] = ["rate": .float([5, 10, 0.1, 1][Int(options & 3)])]
    if options & 4 != 0 { values["dialect"] = .string(options & 8 != 0 ? "documented" : "as-built") }
    if options & 16 != 0 { values["buzzer-limit"] = .float(1) }
    guard let machine = try? ELCommMachine(Setup(options: values)) else { return nil }
    self.options = options
    state = FuzzState(machine)
  }

  mutating func check(_ reading: Reading) {
    guard reading.property == ELCommProperty.totalDistance.rawValue, case .value(let value) = reading.content,
      let distance = value.number
    else { return }
    require(distance >= totalDistance, "the total distance decreases from \(totalDistance) to \(distance)")
    totalDistance = distance
  }

  mutating func check(_ effect: Effect) {
    switch effect {
    case .send(_, let bytes, _, _):
      // Two commands in one send detect the dialect.
      let isProbe = options & 4 == 0 && bytes == Array("-0".utf8)
      require(isProbe || [[45], [55], [66], [0x30], [0x31]].contains(bytes), "not a command of a board: \(printable(bytes))")
    case .store(let key, let bytes):
      require(bytes.count <= 128, "unbounded stored value")
      openStores.append(key)
    default: break
    }
  }

  func checkMachine() {
    let decoder = state.machine.dialogue.receiver.decoder
    require(decoder.buffer.count <= ELCommDecoder.limit && decoder.lastBad.count <= ELCommDecoder.limit, "unbounded buffer of the decoder")
  }

  private mutating func set(_ property: ELCommProperty, _ value: Value) { perform(.set(property: property.rawValue, value)) }

  private mutating func buzz(_ argument: UInt8) {
    let times = ["2s", "500ms", "10", "11", "x", "", "0", "1e9"]
    perform(.run(action: 0, arguments: argument >= 8 ? ["hold": .bool(true)] : ["duration": .string(times[Int(argument)])]))
  }

  private mutating func completeSendAndStores(failure: String? = nil) {
    completeSend(failure: failure)
    while !openStores.isEmpty { give(.stored(key: openStores.removeFirst(), failure: failure)) }
  }

  /// Restarts the daemon with the pending bytes as stored values.
  private mutating func restart() {
    stop()
    guard var next = Self(options: options) else { return }
    (next.state.now, next.state.pending) = (state.now, state.pending)
    self = next
    restore()
  }

  mutating func shutDown() {
    completeSendAndStores()
    completeSendAndStores()
    disconnect()
    completeSendAndStores()
  }
}

/// Requires that decoded fields are in range, and that a message after a flush is decoded completely, or the same one after a pause.
private func checkDecoder(_ bytes: UnsafeBufferPointer<UInt8>) {
  var decoder = ELCommDecoder()
  for byte in bytes {
    guard let message = decoder.decode(byte) else { continue }
    require(ELCommDecoder.speeds.contains(message.speed), "speed out of range: \(message.speed)")
    require(ELCommDecoder.charges.contains(message.battery), "battery out of range: \(message.battery)")
    require(abs(message.distance) <= 99_999_999, "distance out of range: \(message.distance)")
  }
  decoder.flush()
  // A speed that has changed much is confirmed by the next message, unless that directly follows.
  let next = Array("12$88$1$0.35".utf8)
  let message = ELCommMessage(speed: 12, battery: 88, connected: true, distance: 35)
  let first = next.compactMap { decoder.decode($0) }
  decoder.close()
  require(first.isEmpty || first == [message], "the message after a flush is decoded as \(first)")
  require(next.compactMap { decoder.decode($0) } == [message], "the message after a flush and a pause is not decoded")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  checkDecoder(UnsafeBufferPointer(start: start, count: count))
  return ELCommFuzzSession.run(start, count)
}
