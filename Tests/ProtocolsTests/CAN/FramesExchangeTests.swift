import Testing

@testable import Protocols

/// One request and its messages, in virtual time.
@Suite struct FramesExchangeTests {
  private static let ecu = CANIdentifier(number: 0x7EC, is29Bit: false)

  /// Repeats a frame of the ECU every `interval` until the exchange ends, and returns when and how it ends.
  private func end(repeating bytes: [UInt8], every interval: Nanoseconds) -> (at: Instant, FramesExchange.Outcome?, messages: [[UInt8]]) {
    let addressing = ECUAddressing(bus: .automatic, target: Target(respondingFrom: Self.ecu))
    var exchange = FramesExchange(AdapterRequest(addressing: addressing, bytes: [0x22, 1, 1], text: []), at: 0)
    var output: [CANFrame] = []
    exchange.appendDue(to: &output, at: 0)
    var now: Instant = 0
    var next: Instant = 10 * .millisecond
    while now < 120 * .second {
      now = min(next, exchange.deadline)
      if now >= exchange.deadline { exchange.expire(&output, at: now) }
      if now == next {
        exchange.receive(CANFrame(Self.ecu, bytes), &output, at: now)
        next += interval
      }
      if let outcome = exchange.outcome(at: now) { return (now, outcome, exchange.messages.map(\.bytes)) }
    }
    return (now, nil, [])
  }

  @Test func `an ECU that repeats response pending without end is reported as busy after 30 s`() {
    let (time, outcome, messages) = end(repeating: [3, 0x7F, 0x22, 0x78], every: .second)
    #expect(time == 30 * .second && outcome == .messages && messages == [[0x7F, 0x22, 0x78]])
  }

  @Test func `a message that begins again and again fails after 10 s`() {
    let (time, outcome, _) = end(repeating: [0x10, 0x14, 0x62, 1, 1, 0, 0, 0], every: 800 * .millisecond)
    #expect(time == 10 * .second && outcome == .failed("incomplete message"))
  }

  @Test func `the time for the response begins when the adapter has sent the request, and is that of the timing`() {
    func deadline(_ timing: ReplyTiming, latency: Nanoseconds = 0, acknowledged: Instant? = nil) -> Instant {
      let addressing = ECUAddressing(bus: .automatic, target: Target(respondingFrom: Self.ecu), timing: timing)
      var exchange = FramesExchange(
        AdapterRequest(addressing: addressing, bytes: [0x22, 1, 1], text: []), at: 0, latency: latency, isAcknowledged: acknowledged != nil)
      var output: [CANFrame] = []
      exchange.appendDue(to: &output, at: 0)
      if let acknowledged { exchange.acknowledged(at: acknowledged) }
      return exchange.deadline
    }
    #expect(deadline(.initial) == 100 * .millisecond && deadline(.initial, latency: 300 * .millisecond) == 400 * .millisecond)
    #expect(deadline(.initial, acknowledged: 700 * .millisecond) == 800 * .millisecond)
    #expect(deadline(.responsePending, acknowledged: 0) == 1_044_480 * .microsecond)
  }

  @Test func `a negative response after an unanswered request of the same service can be that to the earlier one`() {
    func outcome(_ isAfterUnanswered: Bool) -> (FramesExchange.Outcome?, [[UInt8]]) {
      let addressing = ECUAddressing(bus: .automatic, target: Target(respondingFrom: Self.ecu))
      var exchange = FramesExchange(
        AdapterRequest(addressing: addressing, bytes: [0x22, 1, 1], text: []), at: 0, isAfterUnanswered: isAfterUnanswered)
      var output: [CANFrame] = []
      exchange.appendDue(to: &output, at: 0)
      exchange.receive(CANFrame("7EC#037F223100000000"), &output, at: 1)
      if exchange.outcome(at: 1) == nil { exchange.receive(CANFrame("7EC#0462010105000000"), &output, at: 2) }
      return (exchange.outcome(at: 2), exchange.messages.map(\.bytes))
    }
    #expect(outcome(false) == (.messages, [[0x7F, 0x22, 0x31]]))
    #expect(outcome(true) == (.messages, [[0x62, 1, 1, 5]]))
  }

  @Test func `an unusable message of one ECU does not discard those of the others`() {
    let request = AdapterRequest(addressing: ECUAddressing(bus: .can, target: Target(.functional)), bytes: [0x01, 0x0C], text: [])
    var exchange = FramesExchange(request, at: 0)
    var output: [CANFrame] = []
    exchange.appendDue(to: &output, at: 0)
    exchange.receive(CANFrame("7E9#100A414101020304"), &output, at: 1)
    exchange.receive(CANFrame("7E9#2501020304050607"), &output, at: 2)
    exchange.receive(CANFrame("7E8#04410C1AF8000000"), &output, at: 3)
    exchange.expire(&output, at: exchange.deadline)
    #expect(exchange.outcome(at: FramesExchange.responseTime) == .messages && exchange.messages.map(\.source.number) == [0x7E8])
  }

  @Test func `without any response the exchange ends after the response time`() {
    let (time, outcome, _) = end(repeating: [3, 0x7F, 0x31, 0x78], every: .second)
    #expect(time == FramesExchange.responseTime && outcome == .noResponse)
  }

  // MARK: Requests to all ECUs

  /// Sends a request to all ECUs on 11-bit CAN, and returns the addresses of the sent frames. `respond` returns the responses to a frame.
  private func addresses(
    _ bytes: [UInt8], _ functional: inout FunctionalAddressing, respond: (UInt32) -> [String]
  ) -> (addresses: [UInt32], messages: [[UInt8]]) {
    let request = AdapterRequest(addressing: ECUAddressing(bus: .can, target: Target(.functional)), bytes: bytes, text: [])
    var exchange = FramesExchange(request, functional, at: 0)
    var (output, now, addresses) = ([CANFrame](), Instant(0), [UInt32]())
    exchange.appendDue(to: &output, at: now)
    while true {
      let sent = output.map(\.identifier.number)
      output.removeAll()
      addresses += sent
      now += .millisecond
      for response in sent.flatMap(respond) { exchange.receive(CANFrame(response), &output, at: now) }
      if exchange.outcome(at: now) != nil { break }
      now = exchange.deadline
      exchange.expire(&output, at: now)
      if exchange.outcome(at: now) != nil { break }
    }
    functional.concluded(exchange)
    return (addresses, exchange.messages.map(\.bytes))
  }

  private static let all: [UInt32] = [0x7DF] + Array(0x7E0...0x7E7)

  @Test func `if only physical requests are answered, the ECUs that answer receive further requests at their own addresses`() {
    var functional = FunctionalAddressing()
    let responses: [UInt32: [String]] = [0x7E0: ["7E8#064100BE1FA81300"], 0x7E1: ["7E9#0641008000000000"], 0x7E2: ["7EA#037F011100000000"]]
    let first = addresses([1, 0], &functional) { responses[$0] ?? [] }
    #expect(first.addresses == Self.all && first.messages.count == 2)
    let codes = addresses([3], &functional) { $0 == 0x7E0 ? ["7E8#0443010133000000"] : ["7E9#037F031100000000"] }
    #expect(codes.addresses == [0x7E0, 0x7E1] && codes.messages == [[0x43, 1, 1, 0x33]])
    #expect(addresses([4], &functional) { _ in [] }.addresses == [0x7E0, 0x7E1])
    // The functional request is answered after all.
    #expect(addresses([1, 0], &functional) { $0 == 0x7DF ? ["7E8#064100BE1FA81300"] : [] }.addresses == [0x7DF])
    #expect(addresses([3], &functional) { _ in [] }.addresses == [0x7DF])
  }

  @Test func `while it is unknown whether functional requests are answered, only those that read are repeated`() {
    var functional = FunctionalAddressing()
    #expect(addresses([4], &functional) { _ in [] }.addresses == [0x7DF])
    #expect(addresses([3], &functional) { _ in [] }.addresses == [0x7DF, 0x7E0])
    // An ECU that does not support the request is no sign of such a gateway.
    let unsupported = addresses([3], &functional) { $0 == 0x7E0 ? ["7E8#037F031100000000"] : [] }
    #expect(unsupported.addresses.first == 0x7DF && unsupported.messages.isEmpty)
    // An ECU need not have every service, so that others are asked each time. What clears is sent once, to those that are known.
    #expect(addresses([9, 2], &functional) { $0 == 0x7E0 ? ["7E8#0349020000000000"] : [] }.addresses == Self.all)
    #expect(addresses([3], &functional) { $0 == 0x7E0 ? ["7E8#0243000000000000"] : [] }.addresses == Self.all)
    #expect(addresses([4], &functional) { _ in [] }.addresses == [0x7E0])
    #expect(addresses([3], &functional) { $0 == 0x7DF ? ["7E8#0243000000000000"] : [] }.addresses == [0x7DF])
    #expect(addresses([7], &functional) { _ in [] }.addresses == [0x7DF])
  }

  @Test func `one lost request does not mean that functional requests are blocked`() {
    var functional = FunctionalAddressing()
    func support(at address: UInt32?) -> [UInt32] {
      addresses([1, 0], &functional) { $0 == address ? ["7E8#064100BE1FA81300"] : [] }.addresses
    }
    #expect(support(at: 0x7DF) == [0x7DF] && support(at: 0x7E0) == [0x7DF])
    #expect(addresses([3], &functional) { _ in [] }.addresses == [0x7DF])
    #expect(support(at: 0x7DF) == [0x7DF])
    // Two of them, as in another vehicle.
    #expect(support(at: nil) == [0x7DF] && support(at: nil) == [0x7DF] && support(at: 0x7E0) == Self.all)
  }

  @Test func `a request to another address is neither redirected nor repeated`() {
    var functional = FunctionalAddressing()
    _ = addresses([1, 0], &functional) { $0 == 0x7E0 ? ["7E8#064100BE1FA81300"] : [] }
    let other = CANIdentifier(number: 0x17FC_0010, is29Bit: true)
    let request = AdapterRequest(addressing: ECUAddressing(bus: .can, target: Target(other)), bytes: [0x22, 0xF1, 0x90], text: [])
    for functional in [functional, FunctionalAddressing()] {
      var exchange = FramesExchange(request, functional, at: 0)
      var output: [CANFrame] = []
      exchange.appendDue(to: &output, at: 0)
      exchange.expire(&output, at: exchange.deadline)
      #expect(output.map(\.identifier) == [other] && exchange.outcome(at: exchange.deadline) == .noResponse)
    }
  }

  @Test func `the other ECUs are asked when the engine ECU responds late`() {
    let request = AdapterRequest(addressing: ECUAddressing(bus: .can, target: Target(.functional)), bytes: [3], text: [])
    var exchange = FramesExchange(request, FunctionalAddressing(), at: 0)
    var (output, now) = ([CANFrame](), Instant(0))
    exchange.appendDue(to: &output, at: now)
    for _ in 0..<2 {
      now = exchange.deadline
      exchange.expire(&output, at: now)
    }
    #expect(output.map(\.identifier.number) == [0x7DF, 0x7E0] && exchange.outcome(at: now) == .noResponse)
    exchange.receive(CANFrame("7E8#0243000000000000"), &output, at: now)
    #expect(output.dropFirst(2).map(\.identifier.number) == Array(0x7E1...0x7E7) && exchange.outcome(at: now) == nil)
  }

  @Test func `an ECU whose response is late is not counted twice`() {
    var functional = FunctionalAddressing()
    let late = addresses([3], &functional) { $0 == 0x7E0 ? ["7E8#0443010133000000", "7E8#0443010133000000"] : [] }
    #expect(late.messages == [[0x43, 1, 1, 0x33]])
  }
}
