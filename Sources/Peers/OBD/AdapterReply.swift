// A request to the car, the faults that affect it, and the printed reply. AdapterExchange simulates the bus.
// The adapter stops waiting after the number of frames that the response-count digit gives. Without this digit, it stops after the ATST
// time, or earlier with adaptive timing.

import Protocols

/// A request to the car, with parameters that override the settings.
struct OBDRequest: Sendable {
  var data: [UInt8]
  /// The number of frames after which the adapter stops waiting, or nil for no limit.
  var frameLimit: Int?
  /// The number of messages after which the adapter stops waiting, or nil for no limit.
  var messageLimit: Int?
  /// The address, and whether it includes the priority bits of a 29-bit identifier.
  var header: (address: UInt32, hasPriority: Bool)?
  var timeout: Nanoseconds?

  init(data: [UInt8], frameLimit: Int? = nil) { (self.data, self.frameLimit) = (data, frameLimit) }

  /// The settings with the overrides of this request.
  func overriding(_ base: AdapterSettings) -> AdapterSettings {
    var settings = base
    if let header {
      settings.header = header.address & 0xFF_FFFF
      if header.hasPriority { settings.priority = UInt8(header.address >> 24 & 0x1F) }
    }
    if let timeout { (settings.exactTimeout, settings.adaptive) = (timeout, messageLimit == nil ? settings.adaptive : 0) }
    return settings
  }
}

extension ELM327Adapter {
  /// Text and the time when it is due. The last piece of a reply ends with the prompt.
  typealias TimedOutput = (due: Instant, bytes: [UInt8])

  /// Sends a line of hexadecimal digits to the car. If their number is odd, the last digit is the number of expected frames.
  mutating func runRequest(_ digits: [UInt8], at now: Instant, from start: Instant) {
    let hasFrameCount = digits.count % 2 == 1
    var limit = hasFrameCount ? digits.last.flatMap(HexDigits.value).map(Int.init) : nil
    guard hasFrameCount == (limit != nil), !(hasFrameCount && hasFault(.noCount)),
      let data = HexDigits.bytes(digits.dropLast(hasFrameCount ? 1 : 0))
    else {
      return respond("?", at: start)
    }
    if hasFault(.wrongCount), let count = limit, count > 1 { limit = count - 1 }
    send(OBDRequest(data: data, frameLimit: limit == 0 ? nil : limit), at: now, from: start)
  }

  /// Sends a request to the car and queues the reply, with active faults applied.
  mutating func send(_ request: OBDRequest, at now: Instant, from start: Instant) {
    guard (1...(settings.autoFormat ? 7 : 8)).contains(request.data.count) else { return respond("?", at: start) }
    requestCount &+= 1
    let activeFaults = activateFaults(at: now)
    func activeFault(_ kind: AdapterFault.Kind) -> AdapterFault? { activeFaults.first { $0.kind == kind } }

    if let hang = activeFault(.hang) { return phase = .unresponsive(until: hang.duration.map { now + $0 } ?? .max) }
    if activeFault(.babble) != nil { return phase = .babbling }
    let delayedStart = start + (activeFault(.latency)?.duration ?? 0)
    var reply: [TimedOutput]
    if activeFault(.noData) != nil {
      reply = statusReply("NO DATA", at: delayedStart + timing.firstFrameTimeout(request.overriding(settings)))
    } else if activeFault(.canError) != nil {
      reply = statusReply("CAN ERROR", at: delayedStart)
    } else if activeFault(.stopped) != nil {
      reply = statusReply("STOPPED", at: delayedStart)
    } else if activeFault(.lvReset) != nil {
      restoreDefaults()
      reply = statusReply("LV RESET", at: delayedStart)
    } else {
      reply = exchange(request, from: delayedStart, activeFaults)
    }

    if activeFault(.vendorText) != nil, let first = reply.first { reply.insert((first.due, settings.line("VENDOR MODE")), at: 0) }
    if activeFault(.bufferFull) != nil { truncateWithOverflow(&reply, "BUFFER FULL") }
    if activeFault(.silentOverrun) != nil { truncateWithOverflow(&reply, "") }
    if activeFault(.garbage) != nil { insertNoise(&reply) }
    if let last = reply.popLast() { reply += delayingPrompt(last) }
    let end = reply.last?.due ?? start
    if activeFault(.lostPrompt) != nil, let last = reply.indices.last { reply[last].bytes.removeLast() }
    if activeFault(.disconnect) != nil {
      truncateToHalf(&reply)
      closesLink = true
    }
    if let split = activeFault(.split) { reply = splitRandomly(reply, gap: split.duration ?? 0) }
    for piece in reply { sendQueue.add(piece.bytes, at: piece.due) }
    phase = closesLink ? .unresponsive(until: .max) : .busy(until: max(end, sendQueue.transmissionEnd))
  }

  /// A reply that is only a status text.
  func statusReply(_ text: String, at instant: Instant) -> [TimedOutput] { [(instant, settings.line(text) + settings.prompt)] }

  /// Splits off and delays the prompt of the last piece of a reply, if there is a `late-prompt` fault.
  func delayingPrompt(_ piece: TimedOutput) -> [TimedOutput] {
    guard let delay = faults.first(where: { $0.kind == .latePrompt })?.duration, piece.bytes.last == 0x3E else { return [piece] }
    return [(piece.due, piece.bytes.dropLast()), (piece.due + delay, [0x3E])]
  }

  /// Returns the faults that affect the current reply. A fault with a start time is returned only once.
  private mutating func activateFaults(at now: Instant) -> [AdapterFault] {
    guard !faults.isEmpty else { return [] }
    var activeFaults: [AdapterFault] = []
    for (position, fault) in faults.enumerated() {
      switch fault.trigger {
      case .always: activeFaults.append(fault)
      case .every(let count): if requestCount % max(1, count) == 0 { activeFaults.append(fault) }
      case .after(let time):
        let moment = car.ignition.origin + time
        if pluggedInAt <= moment, now >= moment, triggered.insert(position).inserted { activeFaults.append(fault) }
      }
    }
    return activeFaults
  }
}
