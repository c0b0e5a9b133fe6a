// A request to the car and what the adapter prints of the answer: which frames it hears, when each line is due, when the
// prompt comes, and the faults that strike on the way.
// Facts: a response-count digit ends the wait; without one it is ATST, or shorter with adaptive timing.

import Protocols

extension ELM327Adapter {
  /// Text and when it is due; the last piece of a reply ends with the prompt.
  typealias Piece = (due: Instant, bytes: [UInt8])

  /// Runs a line that is no command: hexadecimal digits for the car, an odd last one counts the frames wanted.
  mutating func request(_ digits: [UInt8], at now: Instant, from start: Instant) {
    let counts = digits.count % 2 == 1
    let limit = counts ? digits.last.flatMap(HexDigits.value) : nil
    guard counts == (limit != nil), !(counts && suffers(.noCount)), let data = HexDigits.bytes(digits.dropLast(counts ? 1 : 0)),
      (1...(settings.autoFormat ? 7 : 8)).contains(data.count)
    else { return say("?", at: start) }
    requests &+= 1
    let strikes = strikes(at: now)
    func strike(_ kind: AdapterFault.Kind) -> AdapterFault? { strikes.first { $0.kind == kind } }

    if let hang = strike(.hang) { return phase = .deaf(until: hang.time.map { now + $0 } ?? .max) }
    if strike(.babble) != nil { return phase = .babbling }
    let later = start + (strike(.latency)?.time ?? 0)
    var reply: [Piece]
    if strike(.noData) != nil {
      reply = nothing("NO DATA", at: later + timing.timeout(settings))
    } else if strike(.canError) != nil {
      reply = nothing("CAN ERROR", at: later)
    } else if strike(.stopped) != nil {
      reply = nothing("STOPPED", at: later)
    } else if strike(.lvReset) != nil {
      restoreDefaults()
      reply = nothing("LV RESET", at: later)
    } else {
      reply = exchange(data, limit: limit == 0 ? nil : limit.map(Int.init), from: later)
    }

    if strike(.garbage) != nil { soil(&reply) }
    let end = reply.last?.due ?? start
    if strike(.lostPrompt) != nil, let last = reply.indices.last { reply[last].bytes.removeLast() }
    if strike(.disconnect) != nil {
      cut(&reply)
      hangsUp = true
    }
    if let split = strike(.split) { reply = chop(reply, gap: split.time ?? 0) }
    for piece in reply { outbox.add(piece.bytes, at: piece.due) }
    phase = hangsUp ? .deaf(until: .max) : .busy(until: max(end, outbox.end))
  }

  /// What the bus brings, under the settings as they are.
  private mutating func exchange(_ data: [UInt8], limit: Int?, from begin: Instant) -> [Piece] {
    var start = begin
    var reply: [Piece] = []
    if settings.busProtocol.automatic, !settings.busProtocol.found {
      reply.append((start, settings.line("SEARCHING...")))
      start += timing.search
      settings.busProtocol.found = true
      settings.busProtocol.number = BusProtocol.ofTheCar
    }
    let silence = start + timing.timeout(settings)
    guard settings.busProtocol.number == BusProtocol.ofTheCar else { return nothing(settings.busProtocol.failure, at: silence) }
    var due = start + timing.latency
    let frames = frames(data, at: due)
    if frames.isEmpty { return reply + nothing("NO DATA", at: silence) }
    for frame in frames.prefix(limit ?? .max) {
      due += timing.frame
      reply.append((due, settings.line(frame)))
    }
    let complete = limit.map { frames.count >= $0 } ?? false
    reply.append((complete ? due : due + timing.wait(settings), settings.prompt))
    return reply
  }

  /// The frames that come back and pass the filter.
  private func frames(_ data: [UInt8], at now: Instant) -> [BusFrame] {
    var message = data
    if !settings.autoFormat {  // the host has put the length in front
      guard let length = data.first, (1...7).contains(length), data.count > Int(length) else { return [] }
      message = Array(data.dropFirst().prefix(Int(length)))
    }
    return car.replies(to: message, at: settings.header, now).filter { settings.hears($0.id) }.flatMap { reply in
      let frames = BusFrame.segments(of: reply.payload, from: reply.id, padding: car.padding)
      return settings.controlsFlow(of: reply.id) ? frames : Array(frames.prefix(1))
    }
  }

  private func nothing(_ text: String, at instant: Instant) -> [Piece] {
    [(instant, settings.line(text) + settings.prompt)]
  }

  /// The faults that strike this reply.
  private mutating func strikes(at now: Instant) -> [AdapterFault] {
    guard !faults.isEmpty else { return [] }
    var strikes: [AdapterFault] = []
    for (position, fault) in faults.enumerated() {
      switch fault.moment {
      case .always: strikes.append(fault)
      case .every(let count): if requests % max(1, count) == 0 { strikes.append(fault) }
      case .after(let time):
        let moment = car.origin + time
        if pluggedIn <= moment, now >= moment, struck.insert(position).inserted { strikes.append(fault) }
      }
    }
    return strikes
  }

  /// Puts one to six bytes of noise somewhere before the prompt.
  private mutating func soil(_ reply: inout [Piece]) {
    guard let piece = reply.indices.randomElement(using: &noise), !reply[piece].bytes.isEmpty else { return }
    let place = Int.random(in: 0..<reply[piece].bytes.count, using: &noise)
    let dirt = (0..<Int.random(in: 1...6, using: &noise)).map { _ in
      [0x00, 0xFF, UInt8.random(in: 0x80...0xFE, using: &noise)].randomElement(using: &noise) ?? 0
    }
    reply[piece].bytes.insert(contentsOf: dirt, at: place)
  }

  /// Leaves the first half.
  private func cut(_ reply: inout [Piece]) {
    var rest = reply.reduce(0) { $0 + $1.bytes.count } / 2
    for piece in reply.indices {
      reply[piece].bytes = Array(reply[piece].bytes.prefix(rest))
      rest -= reply[piece].bytes.count
    }
  }

  /// The same bytes in pieces of 1 to 20, with gaps.
  private mutating func chop(_ reply: [Piece], gap: Nanoseconds) -> [Piece] {
    var chopped: [Piece] = []
    var due = Instant.min
    for piece in reply {
      due = max(due, piece.due)
      var rest = piece.bytes[...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...20, using: &noise))
        chopped.append((due, Array(part)))
        rest = rest.dropFirst(part.count)
        due += Nanoseconds.random(in: 0...gap, using: &noise)
      }
    }
    return chopped
  }

  /// A kilobyte of anything but the prompt.
  mutating func babble() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1024)
    while bytes.count < 1024 {
      let word = noise.next()
      for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift))) }
    }
    return bytes.map { $0 == 0x3E ? 0xFF : $0 }
  }
}
