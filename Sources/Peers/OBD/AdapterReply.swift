// A request to the car, which of the faults strike it, and what is printed in the end. What the bus brings is AdapterExchange's.
// Facts: a response-count digit ends the wait; without one it is ATST, or shorter with adaptive timing.

import Protocols

/// A request to the car, and how it is asked where that differs from the settings.
struct Question: Sendable {
  var data: [UInt8]
  /// The frames, or the messages, after which the wait is over.
  var frames: Int?
  var messages: Int?
  /// An address, and whether it says all 29 bits.
  var header: (address: UInt32, isWhole: Bool)?
  var timeout: Nanoseconds?

  init(data: [UInt8], frames: Int? = nil) { (self.data, self.frames) = (data, frames) }

  /// The settings that count for it.
  func settings(_ usual: AdapterSettings) -> AdapterSettings {
    var settings = usual
    if let header {
      settings.header = header.address & 0xFF_FFFF
      if header.isWhole { settings.priority = UInt8(header.address >> 24 & 0x1F) }
    }
    if let timeout { (settings.exactTimeout, settings.adaptive) = (timeout, messages == nil ? settings.adaptive : 0) }
    return settings
  }
}

extension ELM327Adapter {
  /// Text and when it is due; the last piece of a reply ends with the prompt.
  typealias Piece = (due: Instant, bytes: [UInt8])

  /// Runs a line that is no command: hexadecimal digits for the car, an odd last one counts the frames wanted.
  mutating func request(_ digits: [UInt8], at now: Instant, from start: Instant) {
    let counts = digits.count % 2 == 1
    var limit = counts ? digits.last.flatMap(HexDigits.value).map(Int.init) : nil
    guard counts == (limit != nil), !(counts && hasFault(.noCount)), let data = HexDigits.bytes(digits.dropLast(counts ? 1 : 0)) else {
      return say("?", at: start)
    }
    if hasFault(.wrongCount), let count = limit, count > 1 { limit = count - 1 }
    ask(Question(data: data, frames: limit == 0 ? nil : limit), at: now, from: start)
  }

  /// Asks the car, with whatever goes wrong on the way.
  mutating func ask(_ question: Question, at now: Instant, from start: Instant) {
    guard (1...(settings.autoFormat ? 7 : 8)).contains(question.data.count) else { return say("?", at: start) }
    requests &+= 1
    let activeFaults = activeFaults(at: now)
    func activeFault(_ kind: AdapterFault.Kind) -> AdapterFault? { activeFaults.first { $0.kind == kind } }

    if let hang = activeFault(.hang) { return phase = .deaf(until: hang.time.map { now + $0 } ?? .max) }
    if activeFault(.babble) != nil { return phase = .babbling }
    let later = start + (activeFault(.latency)?.time ?? 0)
    var reply: [Piece]
    if activeFault(.noData) != nil {
      reply = nothing("NO DATA", at: later + timing.timeout(question.settings(settings)))
    } else if activeFault(.canError) != nil {
      reply = nothing("CAN ERROR", at: later)
    } else if activeFault(.stopped) != nil {
      reply = nothing("STOPPED", at: later)
    } else if activeFault(.lvReset) != nil {
      restoreDefaults()
      reply = nothing("LV RESET", at: later)
    } else {
      reply = exchange(question, from: later, activeFaults)
    }

    if activeFault(.vendorText) != nil, let first = reply.first { reply.insert((first.due, settings.line("VENDOR MODE")), at: 0) }
    if activeFault(.bufferFull) != nil { overflow(&reply, "BUFFER FULL") }
    if activeFault(.silentOverrun) != nil { overflow(&reply, "") }
    if activeFault(.garbage) != nil { insertNoise(&reply) }
    if let last = reply.popLast() { reply += late(last) }
    let end = reply.last?.due ?? start
    if activeFault(.lostPrompt) != nil, let last = reply.indices.last { reply[last].bytes.removeLast() }
    if activeFault(.disconnect) != nil {
      cut(&reply)
      closesLink = true
    }
    if let split = activeFault(.split) { reply = splitRandomly(reply, gap: split.time ?? 0) }
    for piece in reply { sendQueue.add(piece.bytes, at: piece.due) }
    phase = closesLink ? .deaf(until: .max) : .busy(until: max(end, sendQueue.end))
  }

  /// Nothing but a text.
  func nothing(_ text: String, at instant: Instant) -> [Piece] { [(instant, settings.line(text) + settings.prompt)] }

  /// The end of a reply with its prompt where it belongs, or behind it in time.
  func late(_ piece: Piece) -> [Piece] {
    guard let delay = faults.first(where: { $0.kind == .latePrompt })?.time, piece.bytes.last == 0x3E else { return [piece] }
    return [(piece.due, piece.bytes.dropLast()), (piece.due + delay, [0x3E])]
  }

  /// The faults that strike this reply.
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
