// A request to the car, the faults that affect it, and the printed reply. AdapterExchange simulates the bus.
// Facts: a response-count digit ends the wait; otherwise it is ATST, or less with adaptive timing.

import Protocols

/// A request to the car, with parameters that override the settings.
struct OBDRequest: Sendable {
  var data: [UInt8]
  /// The number of frames or messages after which the wait ends.
  var frames: Int?
  var messages: Int?
  /// An address, and whether it has all 29 bits.
  var header: (address: UInt32, isWhole: Bool)?
  var timeout: Nanoseconds?

  init(data: [UInt8], frames: Int? = nil) { (self.data, self.frames) = (data, frames) }

  /// The adapter's settings with the overrides of this request.
  func settings(_ base: AdapterSettings) -> AdapterSettings {
    var settings = base
    if let header {
      settings.header = header.address & 0xFF_FFFF
      if header.isWhole { settings.priority = UInt8(header.address >> 24 & 0x1F) }
    }
    if let timeout { (settings.exactTimeout, settings.adaptive) = (timeout, messages == nil ? settings.adaptive : 0) }
    return settings
  }
}

extension ELM327Adapter {
  /// Text and the time when it is due. The last piece of a reply ends with the prompt.
  typealias Piece = (due: Instant, bytes: [UInt8])

  /// Runs a line of hexadecimal digits for the car. An odd last digit is the number of expected frames.
  mutating func runRequest(_ digits: [UInt8], at now: Instant, from start: Instant) {
    let hasFrameCount = digits.count % 2 == 1
    var limit = hasFrameCount ? digits.last.flatMap(HexDigits.value).map(Int.init) : nil
    guard hasFrameCount == (limit != nil), !(hasFrameCount && hasFault(.noCount)),
      let data = HexDigits.bytes(digits.dropLast(hasFrameCount ? 1 : 0))
    else {
      return respond("?", at: start)
    }
    if hasFault(.wrongCount), let count = limit, count > 1 { limit = count - 1 }
    send(OBDRequest(data: data, frames: limit == 0 ? nil : limit), at: now, from: start)
  }

  /// Sends a request to the car and queues the reply, with active faults applied.
  mutating func send(_ request: OBDRequest, at now: Instant, from start: Instant) {
    guard (1...(settings.autoFormat ? 7 : 8)).contains(request.data.count) else { return respond("?", at: start) }
    requests &+= 1
    let activeFaults = activeFaults(at: now)
    func activeFault(_ kind: AdapterFault.Kind) -> AdapterFault? { activeFaults.first { $0.kind == kind } }

    if let hang = activeFault(.hang) { return phase = .unresponsive(until: hang.time.map { now + $0 } ?? .max) }
    if activeFault(.babble) != nil { return phase = .babbling }
    let later = start + (activeFault(.latency)?.time ?? 0)
    var reply: [Piece]
    if activeFault(.noData) != nil {
      reply = statusReply("NO DATA", at: later + timing.timeout(request.settings(settings)))
    } else if activeFault(.canError) != nil {
      reply = statusReply("CAN ERROR", at: later)
    } else if activeFault(.stopped) != nil {
      reply = statusReply("STOPPED", at: later)
    } else if activeFault(.lvReset) != nil {
      restoreDefaults()
      reply = statusReply("LV RESET", at: later)
    } else {
      reply = exchange(request, from: later, activeFaults)
    }

    if activeFault(.vendorText) != nil, let first = reply.first { reply.insert((first.due, settings.line("VENDOR MODE")), at: 0) }
    if activeFault(.bufferFull) != nil { truncateWithOverflow(&reply, "BUFFER FULL") }
    if activeFault(.silentOverrun) != nil { truncateWithOverflow(&reply, "") }
    if activeFault(.garbage) != nil { insertNoise(&reply) }
    if let last = reply.popLast() { reply += late(last) }
    let end = reply.last?.due ?? start
    if activeFault(.lostPrompt) != nil, let last = reply.indices.last { reply[last].bytes.removeLast() }
    if activeFault(.disconnect) != nil {
      truncate(&reply)
      closesLink = true
    }
    if let split = activeFault(.split) { reply = splitRandomly(reply, gap: split.time ?? 0) }
    for piece in reply { sendQueue.add(piece.bytes, at: piece.due) }
    phase = closesLink ? .unresponsive(until: .max) : .busy(until: max(end, sendQueue.end))
  }

  /// A reply that is only a status text.
  func statusReply(_ text: String, at instant: Instant) -> [Piece] { [(instant, settings.line(text) + settings.prompt)] }

  /// The last piece of a reply, with its prompt split off and delayed if there is a `late-prompt` fault.
  func late(_ piece: Piece) -> [Piece] {
    guard let delay = faults.first(where: { $0.kind == .latePrompt })?.time, piece.bytes.last == 0x3E else { return [piece] }
    return [(piece.due, piece.bytes.dropLast()), (piece.due + delay, [0x3E])]
  }

  /// The faults that affect the current reply.
  private mutating func activeFaults(at now: Instant) -> [AdapterFault] {
    guard !faults.isEmpty else { return [] }
    var activeFaults: [AdapterFault] = []
    for (position, fault) in faults.enumerated() {
      switch fault.moment {
      case .always: activeFaults.append(fault)
      case .every(let count): if requests % max(1, count) == 0 { activeFaults.append(fault) }
      case .after(let time):
        let moment = car.ignition.origin + time
        if pluggedIn <= moment, now >= moment, triggered.insert(position).inserted { activeFaults.append(fault) }
      }
    }
    return activeFaults
  }
}
