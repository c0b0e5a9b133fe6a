// Simulates the exchange of a request on the bus: protocol detection, bus state, receive filter, arrival times and timeout.
// An ELM327 receives only between a request and its prompt. ECUs respond concurrently on CAN, and one after the other on a K-line.

import Protocols

/// A frame and the time of its arrival.
struct Arrival: Sendable {
  var due: Instant
  var frame: OBDFrame
  /// Whether the frame is the last one of its message.
  var isLast: Bool
}

extension ELM327Adapter {
  /// Returns the output for a request, from notices such as SEARCHING... to the prompt.
  mutating func exchange(_ request: OBDRequest, from begin: Instant, _ activeFaults: [AdapterFault]) -> [TimedOutput] {
    var start = begin
    var reply: [TimedOutput] = []
    if let failure = openProtocol(&reply, &start) { return reply + failure }
    let settings = request.overriding(settings)
    let timeoutEnd = start + timing.firstFrameTimeout(settings)
    let responses = arrivals(request.data, settings, from: start, activeFaults)
    var all = leftovers(from: start)
    if activeFaults.contains(where: { $0.kind == .stale }) { stale = responses.map(\.frame) } else { all += responses }
    var end = timeoutEnd
    var received = (frames: 0, messages: 0)
    for arrival in all.enumerated().sorted(by: { ($0.element.due, $0.offset) < ($1.element.due, $1.offset) }).map(\.element) {
      guard arrival.due <= end else {
        late.append(arrival)
        continue
      }
      reply.append((arrival.due, settings.line(arrival.frame)))
      received.frames += 1
      received.messages += arrival.isLast ? 1 : 0
      end = arrival.due + timing.nextFrameTimeout(settings, on: car.bus)
      if received.frames == request.frameLimit || received.messages == request.messageLimit {
        end = arrival.due
        break
      }
    }
    if received.frames == 0 { return reply + statusReply("NO DATA", at: timeoutEnd) }
    reply.append((end, settings.prompt))
    return reply
  }

  /// Detects the protocol if necessary, and initialises a K-line. Adds notices to `reply`, and the duration to `start`. Returns the error
  /// output if this fails or no ECU responds, or nil if the request can be sent.
  private mutating func openProtocol(_ reply: inout [TimedOutput], _ start: inout Instant) -> [TimedOutput]? {
    let busState = car.busState(at: start)
    if settings.obdProtocol.isAutomatic, !settings.obdProtocol.isDetected {
      reply.append((start, settings.line("SEARCHING...")))
      guard busState == .awake else { return statusReply("UNABLE TO CONNECT", at: start + timing.failedSearch) }
      start += timing.search
      settings.obdProtocol.isDetected = true
      settings.obdProtocol.isOpen = true
      settings.obdProtocol.number = car.bus.rawValue
    }
    let timeoutEnd = start + timing.firstFrameTimeout(settings)
    guard settings.obdProtocol.number == car.bus.rawValue else { return statusReply(settings.obdProtocol.failure, at: timeoutEnd) }
    if car.bus.isCAN {
      switch busState {
      case .awake: return nil
      case .silent: return statusReply("NO DATA", at: timeoutEnd)
      case .dead: return statusReply("CAN ERROR", at: timeoutEnd)
      }
    }
    if settings.obdProtocol.isOpen {
      guard busState != .awake else { return nil }
      settings.obdProtocol.isOpen = false
      return statusReply("NO DATA", at: timeoutEnd)
    }
    // Fast init is a pulse; slow init is a byte at 5 baud, with a dot for each step.
    let isSlow = car.bus == .iso9141
    reply.append((start, Array("BUS INIT: ".utf8)))
    for step in 1...3 where isSlow { reply.append((start + timing.slowInit * Nanoseconds(step) / 4, Array(".".utf8))) }
    start += isSlow ? timing.slowInit : timing.fastInit
    guard busState == .awake else { return statusReply("ERROR", at: start) }
    settings.obdProtocol.isOpen = true
    reply.append((start, settings.line("OK")))
    return nil
  }

  /// The frames of the car's reply to this request that pass the filter.
  private mutating func arrivals(_ data: [UInt8], _ settings: AdapterSettings, from start: Instant, _ activeFaults: [AdapterFault])
    -> [Arrival]
  {
    var message = data
    if !settings.autoFormat, car.bus.isCAN {  // the host sends the PCI byte, which contains the length
      guard let length = data.first, (1...7).contains(length), data.count > Int(length) else { return [] }
      message = Array(data.dropFirst().prefix(Int(length)))
    }
    let bus = car.bus
    let address = settings.address(on: bus)
    let addressByte = bus.isCAN ? settings.extendedAddress : nil
    var replies = applyFaults(car.replies(to: message, at: address, addressByte: addressByte, start), to: message, activeFaults)
    if activeFaults.contains(where: { $0.kind == .stray }), message.first == 0x01, message.count > 1, !replies.isEmpty,
      let other = [0x05, 0x0D, 0x0C].first(where: { !message.contains($0) })
    {
      replies = car.replies(to: [0x01, other], at: address, start) + replies
    }
    var arrivals: [Arrival] = []
    // The end of the last message, by sender on CAN; all ECUs share a K-line.
    var ends: [UInt32: Instant] = [:]
    for reply in replies where settings.accepts(reply.id, on: bus) && (addressByte == nil || reply.addressByte == settings.testerAddress) {
      let channel = bus.isCAN ? reply.id : 0
      var frames = OBDFrame.segments(of: reply.payload, from: reply.id, addressByte: reply.addressByte, padding: car.padding, on: bus)
      if !settings.sendsFlowControl(to: reply.id, on: bus) { frames = Array(frames.prefix(1)) }
      var due = max(start + timing.latency(on: bus) + reply.delay, ends[channel] ?? .min)
      for (index, frame) in frames.enumerated() {
        due += reply.pause ?? timing.duration(of: frame)
        arrivals.append(Arrival(due: due, frame: frame, isLast: index == frames.count - 1))
      }
      ends[channel] = due
    }
    return arrivals
  }

  /// Applies faults to the replies of the car.
  private func applyFaults(_ replies: [Reply], to request: [UInt8], _ activeFaults: [AdapterFault]) -> [Reply] {
    let service = request.first ?? 0
    return activeFaults.reduce(replies) { replies, fault in
      let matchesPID = service == 0x01 && fault.code.map { request.dropFirst().contains($0) } ?? false
      switch fault.kind {
      case .deadPID: return matchesPID ? [] : replies
      case .refusedPID:
        return matchesPID ? replies.map { $0.with(payload: Reply.negativeResponse(service, 0x12)) } : replies
      case .longPID: return matchesPID ? replies.map { $0.with(payload: $0.payload + [0]) } : replies
      case .twice: return replies.flatMap { [$0, $0] }
      case .negativeResponse:
        return replies.map { $0.with(payload: Reply.negativeResponse(service, fault.code ?? 0x10)) }
      case .responsePending:
        return replies.flatMap { reply -> [Reply] in
          var answer = reply
          answer.delay += fault.duration ?? 0
          return [reply.with(payload: Reply.negativeResponse(service, 0x78)), answer]
        }
      case .interleave:
        return replies.flatMap { reply -> [Reply] in
          let other = reply.payload.enumerated().map { $0 < 3 ? $1 : 0x16 }
          return [
            reply, Reply(id: car.bus.responseAddressOfOtherECU(than: reply.id), payload: other, delay: reply.delay + 200 * .microsecond),
          ]
        }
      default: return replies
      }
    }
  }

  /// Removes and returns the frames of earlier requests: a reply held back by the fault `stale`, and late frames. If the first late frame
  /// arrived before `start`, all late frames are lost, because a long message is not received without its first frame.
  private mutating func leftovers(from start: Instant) -> [Arrival] {
    let held = stale.enumerated().map { Arrival(due: start + timing.frame * Nanoseconds($0.offset) / 2, frame: $0.element, isLast: false) }
    let pending = late.first.map { $0.due >= start } ?? false ? late : []
    (stale, late) = ([], [])
    return held + pending
  }
}
