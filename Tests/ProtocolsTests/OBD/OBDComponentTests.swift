// The components of the `obd` machine alone, in virtual time.

import Testing

@testable import Protocols

@Suite("The components of an obd device") struct OBDComponentTests {
  var values = ValueTable(actions: [], signals: [], overrides: PropertyOverrides(), voltageProperty: nil)
  var effects = Effects()

  func sent(_ effects: Effects) -> [String] {
    effects.list.compactMap { if case .send(_, let bytes, _, _) = $0 { String(decoding: bytes, as: UTF8.self) } else { nil } }
  }

  /// An adapter that is set up: the reply to each command of the setup.
  mutating func adapter(_ replies: [String: String] = [:]) -> AdapterSession {
    var session = AdapterSession()
    session.linkCameUp(baud: nil, &effects)
    for _ in SetupStep.allCases where !session.isReady {
      session.sendNext(at: 0, &effects)
      let command = String(decoding: session.dialogue.command.dropLast(), as: UTF8.self)
      let reply = replies[command] ?? (["ATZ", "ATI"].contains(command) ? "ELM327 v1.5" : command == "STI" ? "?" : "OK")
      _ = session.receive(Array("\(reply)\r\r>".utf8), at: 0)
      _ = session.replied(at: 0, &values, &effects)
    }
    return session
  }

  // MARK: Adapter

  @Test mutating func `a setup ends ready, and lost settings begin another one`() throws {
    _ = values.placeProperties(hasBatteryRecord: true, fast: nil, [], period: .second / 20)
    var session = adapter(["ATS0": "?"])
    #expect(session.isReady && session.traits.name == "ELM327 v1.5" && session.traits.unsupported == [.spacesOff, .chipIdentity])
    guard case .needs(.setUp) = session.statusReceived(.banner, at: 1, &values, &effects) else { throw Unreadable("no setup") }
    session.beginSetup(at: 1, &effects)
    guard case .settingUp(step: 0) = session.state else { throw Unreadable("\(session.state)") }
    #expect(sent(effects).last == " " && !session.dialogue.isIdle)
  }

  @Test mutating func `a rejected header stops the requests to its ECU, unless it is that of the fast request`() throws {
    _ = values.placeProperties(hasBatteryRecord: true, fast: nil, [], period: .second / 20)
    var session = adapter()
    let addressing = ECUAddressing(bus: .can, target: .bms)
    for isForFastRequest in [false, true] {
      _ = session.retarget(to: addressing, fastTarget: isForFastRequest ? addressing.target : .unaddressed, at: 1, &effects)
      #expect(session.dialogue.command.starts(with: "ATSP6".utf8) || session.dialogue.command.starts(with: "ATSH".utf8))
      _ = session.receive(Array("?\r\r>".utf8), at: 1)
      switch session.replied(at: 1, &values, &effects) {
      case .rejected(let target, let message): #expect(!isForFastRequest && target == .bms && message.contains("does not support AT"))
      case .needs(.rest): #expect(isForFastRequest && session.addressing == nil)
      case let event: throw Unreadable("\(event)")
      }
    }
  }

  @Test mutating func `three timeouts in a row need another setup, and an answer in between does not`() {
    var counters = AdapterFailureCounters(silent: "silent", unusable: "unusable")
    #expect(counters.count(.timeout, &values, &effects) == .resynchronise)
    #expect(counters.count(.timeout, &values, &effects) == .resynchronise && values.status == .degraded)
    counters.reset()
    #expect(counters.count(.timeout, &values, &effects) == .resynchronise)
    #expect(counters.count(.timeout, &values, &effects) == .resynchronise)
    #expect(counters.count(.timeout, &values, &effects) == .needsSetup)
  }

  @Test mutating func `the long timeout ends after five responses without response pending`() {
    var timeout = ResponseTimeout()
    timeout.lengthen()
    for _ in 0..<4 { timeout.recordResponse(withoutPending: true) }
    timeout.recordResponse(withoutPending: false)
    for _ in 0..<4 { timeout.recordResponse(withoutPending: true) }
    #expect(timeout.isLong && !timeout.allowsFrameCount)
    timeout.recordResponse(withoutPending: true)
    #expect(!timeout.isLong && timeout.allowsFrameCount)
  }

  @Test func `a stored timing is valid for its adapter only`() {
    var timeout = ResponseTimeout()
    timeout.restore(Array("2 25 ELM327 v1.5".utf8))
    timeout.useStored(for: "ELM327 v2.1")
    #expect(timeout.timing == .initial)
    timeout.useStored(for: "ELM327 v1.5")
    #expect(timeout.timing == ReplyTiming(adaptive: 2, timeout: 25))
    #expect(timeout.useDefault() && timeout.timing == .initial && !timeout.useDefault())
  }

  // MARK: Detection

  @Test func `candidates are tried in turn, and after the last one a pause follows`() {
    var detection = ProtocolDetection(.auto)
    var request = detection.begin(0, vehicleRequest: nil)
    var requests = [request.rawValue]
    for _ in 0..<3 {
      let next = detection.beginNext(after: request, vehicleRequest: nil)
      #expect(!next.isLast)
      request = next.request
      requests.append(request.rawValue)
    }
    #expect(requests == ["220101", "2101", "0100", "0100"] && detection.bus == .automatic)
    let last = detection.beginNext(after: request, vehicleRequest: nil)
    #expect(last.isLast && last.request == .bmsUDS && detection.bus == .can)
  }

  @Test func `only a missing response to a request for optional PIDs is repeated by the discovery`() {
    var detection = ProtocolDetection(.generic)
    _ = detection.begin(0, vehicleRequest: nil)
    let request = FastRequest(supportedFrom: 0x20, on: .can)
    var steps: [ProtocolDetection.FailureStep] = []
    for status in [ELMStatus.canError, .noData, .canError, .noData] {
      steps.append(detection.recordFailure(of: request, .status(status)))
    }
    #expect(steps == [.none, .retry, .none, .ended])
  }

  @Test mutating func `another VIN is another vehicle, once until it is silent`() {
    var detection = ProtocolDetection(.generic)
    var found = ECUDiscovery(on: .can)
    found.add([0x18, 0x18, 0, 0], base: 0, from: 0x7E8)
    found.setVINHash(ECUDiscovery.vinHash(of: "first"))
    detection.setVehicle(found)
    #expect(detection.recordVIN("second", &effects) && !detection.recordVIN("second", &effects))
    detection.resetIdentity()
    #expect(!detection.recordVIN("first", &effects))
  }

  // MARK: Polling

  @Test func `a fast request is polled at its slot, and a failed one at the next`() {
    var scheduler = PollScheduler(rate: 20, phase: 0, first: .bmsUDS)
    scheduler.resume(at: .second)
    #expect(scheduler.beginPoll(allowsFrameCount: true, at: .second) == Array("220101\r".utf8))
    #expect(scheduler.overdueAt == .second + .second / 20 && scheduler.nextWake(after: .second) == nil)
    scheduler.markOverdue(at: .second + .second / 20)
    #expect(scheduler.overdueAt == nil)
    scheduler.pollFailed(at: .second + .second / 20)
    #expect(scheduler.nextWake(after: .second) == .second + .second / 20)
    scheduler.pause(until: 9 * .second)
    #expect(scheduler.nextWake(after: .second) == 9 * .second)
  }

  @Test func `the third missing response begins a liveness check, and a bus error before the first answer tries another protocol`() {
    var (counters, fast) = (PollFailureCounters(), FastPoll(.bmsUDS))
    func consequence(_ status: ELMStatus) -> String {
      switch counters.recordFailure(.status(status), &fast, isProbing: false, hasLostEcho: false, on: .can) {
      case .retry: "retry"
      case .pause: "pause"
      case .tryOther: "other"
      default: "?"
      }
    }
    #expect(consequence(.noData) == "other" && consequence(.canError) == "other")
    counters.recordResponse()
    #expect([consequence(.noData), consequence(.noData), consequence(.noData)] == ["retry", "retry", "pause"])
    let pids = [PollRequest.Parameter(number: 0x0C, length: 2), PollRequest.Parameter(number: 0x0D, length: 1)]
    fast.begin(FastRequest(pids, of: Target(.engine)), every: nil)
    #expect(consequence(.noData) == "retry" && fast.livenessCheckReason != nil && fast.request.rawValue == "0100")
    #expect(fast.endLivenessCheck() != nil && fast.request.rawValue == "010C0D")
  }

  @Test func `the bytes of the fast request follow its frame count`() {
    var fast = FastPoll(.bmsUDS)
    fast.recordResponse(frames: 9, from: 0x7EC)
    #expect(fast.bytes(allowsFrameCount: true) == Array("2201019\r".utf8) && fast.bytes(allowsFrameCount: false) == Array("220101\r".utf8))
    fast.dropFrameCount()
    #expect(fast.bytes(allowsFrameCount: true) == Array("220101\r".utf8))
  }

  // MARK: Sleep

  @Test func `pauses grow to the interval of probes, and start again after an answer`() {
    var sleep = SleepPolicy(PauseConditions(probeInterval: 30 * .second))
    let traits = AdapterTraits()
    let lengths = (0..<6).map { _ in sleep.pauseForSilence(traits).length / .second }
    #expect(lengths == [1, 2, 5, 10, 30, 30])
    sleep.resetPauses()
    #expect(sleep.pauseForSilence(traits).length == .second)
    #expect(!sleep.beginPause(30 * .second, traits) && sleep.isProbing)
  }

  // MARK: Clients

  @Test mutating func `a clear operation waits for clock and disk, and an abandoned one clears nothing`() throws {
    var sequence = CodeClearingSequence()
    let query = OBDQuery(7, try sequence.preview(isConfirmed: true, Motion(), ecus: [], isResponding: false))
    for isAbandoned in [false, true] {
      sequence.begin(7)
      #expect(throws: CommandError.self) { _ = try sequence.preview(isConfirmed: true, Motion(), ecus: [], isResponding: false) }
      sequence.codesRead(by: query, &effects)
      sequence.timeReceived(WallTime(microseconds: 0), &effects)
      if isAbandoned { sequence.cancelled(7) }
      let next = sequence.stored(CodeClearingSequence.key, nil, Motion(), requiresResponse: true, &effects)
      #expect((next?.multiECU is CodeClearing) == !isAbandoned)
      sequence.completed(7)
    }
    #expect(effects.list.filter { if case .store(CodeClearingSequence.key, _) = $0 { true } else { false } }.count == 2)
  }

  @Test mutating func `queries beyond the limit are rejected, and all fail with the link`() throws {
    var queries = Queries()
    for id in 0..<CommandID(Queries.maxWaiting) { try queries.append(OBDQuery(id, TroubleCodeQuery())) }
    #expect(throws: CommandError.self) { try queries.append(OBDQuery(99, TroubleCodeQuery())) }
    queries.cancel(3)
    #expect(queries.failWaiting(.notConnected("gone"), &effects).count == Queries.maxWaiting - 1 && !queries.areWaiting)
  }
}
