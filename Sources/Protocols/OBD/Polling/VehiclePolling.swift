// Polls the vehicle: coordinates protocol detection, recognition of the vehicle, poll scheduler and response timeout, and publishes the
// values in replies. The fast request (FastPoll.swift) is the one that is polled at the device's rate; the other requests are sent between
// its polls.

struct VehiclePolling: Sendable {
  /// The timeout while the adapter detects the protocol: it tries several protocols, one of them at 5 baud.
  private static let protocolDetectionTimeout: Nanoseconds = 12 * .second
  /// The timeout for the reply to a request with STPX. The adapter itself waits only 200 ms for a response.
  private static let stpxTimeout: Nanoseconds = .second
  private static let unansweredMessage = "the vehicle does not respond to this request"

  private(set) var detection: ProtocolDetection
  private(set) var scheduler: PollScheduler
  private(set) var timeout = ResponseTimeout()
  private let recognition: VehicleRecognition

  init(
    rate: Double, phase: Double, _ choice: VehicleChoice, isFastOnly: Bool, _ signals: [CustomSignal], _ overrides: PropertyOverrides,
    bitRate: Int?, _ values: inout ValueTable
  ) {
    detection = ProtocolDetection(choice)
    scheduler = PollScheduler(rate: rate, phase: phase, first: choice.candidates[0].request)
    let requests = ConfiguredRequests(isFastOnly: isFastOnly, signals: signals, overrides: overrides)
    recognition = VehicleRecognition(choice, VehicleDeclaration(requests, bitRate: bitRate))
    recognition.begin(on: detection.bus, &scheduler, &values)
  }

  // MARK: Connection

  mutating func restore(_ stored: [String: [UInt8]], _ values: inout ValueTable, _ effects: inout Effects) {
    timeout.restore(stored[ResponseTimeout.key])
    if let candidate = detection.restore(request: stored["request"]) { begin(candidate) }
    if let found = detection.ecus(in: stored, &effects), recognition.recognise(found, &detection, &scheduler, &values, &effects) {
      begin(detection.useStored(found))
    }
  }

  mutating func linkCameUp() {
    scheduler.reset()
    detection.linkCameUp()
    timeout.linkCameUp()
    begin()
  }

  /// Handles the completed setup of the adapter with this name.
  mutating func adapterReady(_ adapter: String?, isProbing: Bool, at now: Instant) {
    timeout.useStored(for: adapter)
    detection.adapterWasSetUp()
    scheduler.adapterReady(isProbing: isProbing, at: now)
  }

  /// Ends tuning and the request in flight, because the adapter is set up again or the link is down.
  mutating func interrupt(_ error: CommandError, _ effects: inout Effects) {
    timeout.endTuning(error, &effects)
    scheduler.interrupted()
  }

  /// Ends the request in flight, because nothing will be sent to the adapter until it is reinitialised.
  mutating func endRequest() { scheduler.endPoll() }

  private mutating func begin(_ candidate: Int? = nil) {
    scheduler.begin(detection.begin(candidate, vehicleRequest: scheduler.fast.vehicleRequest))
  }

  // MARK: Addressing

  /// Stops the requests to an ECU that the adapter cannot address, and withdraws their values.
  mutating func stopRequests(to target: Target?, _ message: String, _ values: inout ValueTable, _ effects: inout Effects) {
    for request in scheduler.stopRequests(to: target, message) { values.withdraw(request, message, &effects) }
  }

  mutating func retargeted(took: Nanoseconds) { scheduler.retargeted(took: took) }

  // MARK: The next request

  /// Marks the poll in flight as overdue if its next slot has come.
  mutating func markOverdue(at now: Instant) { scheduler.markOverdue(at: now) }

  /// The next command: at its slot, the fast request; before the slot, another request that fits into the gap or, if none does, retargeting
  /// for the fast request. With `isProbing`, only the fast request and those of a review are sent.
  mutating func next(
    _ session: some AdapterDialogue, isProbing: Bool, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects
  ) -> VehicleSession.Next {
    let supportsSTPX = session.traits.supportsSTPX && scheduler.fast.request.target.passesDefaultFilter
    let adapter = RequestQueue.AdapterState(
      addressing: session.addressing, fastAddressing: fastAddressing, supportsSTPX: supportsSTPX,
      isFrameInterface: session.traits.isFrameInterface)
    let index = isProbing ? scheduler.queue.nextReviewed : timeout.isTuning ? nil : scheduler.pick(at: now, adapter)
    if let index { return request(index, session, adapter, at: now, &values, &effects) }
    scheduler.endForcedWindow()
    if !session.isSet(to: adapter.fastAddressing) { return retarget(to: adapter.fastAddressing, &values, &effects) }
    guard now >= scheduler.pace.due else { return .nothing }
    let isKnown = detection.bus.isCAN || scheduler.isConfirmed
    let text = scheduler.beginPoll(allowsFrameCount: timeout.allowsFrameCount && !session.traits.isFrameInterface, at: now)
    return .send(
      AdapterRequest(addressing: adapter.fastAddressing, bytes: scheduler.fast.request.bytes, text: text),
      timeout: isKnown ? AdapterSession.timeout : Self.protocolDetectionTimeout)
  }

  /// Sends a queued request, or retargets the adapter for it.
  private mutating func request(
    _ index: Int, _ session: some AdapterDialogue, _ adapter: RequestQueue.AdapterState, at now: Instant, _ values: inout ValueTable,
    _ effects: inout Effects
  ) -> VehicleSession.Next {
    let request = scheduler.queue.requests[index]
    let destination = addressing(of: request)
    let isAtDestination = session.isSet(to: destination)
    guard isAtDestination || adapter.canUseSTPX(for: request) else { return retarget(to: destination, &values, &effects) }
    scheduler.beginRequest(index, at: now, adapter)
    let text = isAtDestination ? request.bytes : request.stpxBytes(countingFrames: session.traits.stpxCountsFrames)
    let command = AdapterRequest(addressing: destination, bytes: request.request, text: text)
    if isAtDestination { return .send(command, timeout: AdapterSession.timeout) }
    return .send(
      command,
      timeout: request.usesLongTimeout ? AdapterSession.timeout : Self.stpxTimeout)
  }

  /// Retargets the adapter. If the target needs a CAN header but the vehicle has no CAN bus, stops the requests to it instead.
  private mutating func retarget(to next: ECUAddressing, _ values: inout ValueTable, _ effects: inout Effects) -> VehicleSession.Next {
    guard let target = next.target, target.request != nil, !detection.bus.isCAN, detection.bus != .automatic else {
      return .retarget(next)
    }
    stopRequests(to: target, OBDProtocol.noCAN, &values, &effects)
    return .nothing
  }

  // MARK: Pauses

  /// Begins a review of the properties at these positions, or returns false if no request has one of them.
  mutating func beginReview(of positions: Set<Int>) -> Bool { scheduler.beginReview(of: positions) }
  mutating func pause(until: Instant?) { scheduler.pause(until: until) }
  /// Ends a pause so that the voltage can be measured. Polling resumes only if the voltage allows it.
  mutating func endPause() { scheduler.endPause() }
  mutating func resume(at now: Instant) { scheduler.resume(at: now) }

  /// Sets the number of consecutive pauses without a response.
  mutating func pausesChanged(to count: Int) { detection.pausesChanged(to: count) }

  /// Handles a pause that begins because the vehicle does not respond. `checksLiveness`: the next poll is a request that all ECUs support.
  mutating func paused(_ message: String, checksLiveness: Bool) {
    scheduler.vehicleSilent()
    if checksLiveness { scheduler.beginLivenessCheck(message, on: detection.bus) }
  }

  /// Handles a vehicle that does not respond: ends tuning, and requests the identification again once it responds.
  mutating func vehicleSilent(_ message: String, _ effects: inout Effects) {
    timeout.endTuning(.refused(code: .noAnswer, message), &effects)
    detection.vehicleSilent()
  }

  mutating func resetStatistics() { scheduler.resetStatistics() }

  // MARK: Replies to the fast request

  /// Publishes the values of an answered poll. Returns false if none are published, because PIDs are polled one by one from now on.
  mutating func answered(
    _ poll: PollScheduler.Poll, _ data: Range<Int>, from source: UInt32?, _ session: some AdapterDialogue, at now: Instant,
    _ values: inout ValueTable, _ effects: inout Effects
  ) -> Bool {
    let isFirst = scheduler.answered()
    detection.answered()
    if scheduler.fast.onePIDTest == .confirmed {
      pollOneByOne(at: now, &values, &effects)
      return false
    }
    let request = scheduler.fast.request
    scheduler.recordResponse(frames: session.reader.frameCount(from: request.target), from: source)
    if request.isBMSRecord {
      if isFirst { recognition.recognise(session.reader, record: data, &detection, &scheduler, &values, &effects) }
      values.publishRecord(session.reader, data, at: now, &effects)
    } else {
      if isFirst { recognition.vehicleWithoutPIDsResponded(on: detection.bus, &values, &effects) }
      let completeness = values.publish(scheduler.fast.rows, request.parameters, session.reader, data, from: source, at: now, &effects)
      if completeness == .none { values.countBadReply(session.reply, &effects) }
      scheduler.recordCompleteness(completeness)
    }
    timeout.recordResponse(withoutPending: session.reader.messages.count == 1)
    if detection.mustIdentifyAgain {
      detection.resetIdentity()
      values.resetScales()
      scheduler.identifyAgain()
    }
    scheduler.finish(poll, isFirst: isFirst, at: now)
    timeout.recordPoll(max(now &- poll.sent, 0), for: session.traits.name, &effects)
    if isFirst {
      values.reportVehicle(&effects)
      values.publish(.request, .string(scheduler.fast.request.rawValue), &effects)
      detection.store(scheduler.fast.request, &effects)
    }
    if isFirst || scheduler.statistics.isDue(at: now) { scheduler.publishMeasurements(at: now, values, &effects) }
    return true
  }

  /// Polls one PID per request from now on, because the ECU answers requests for one PID but not for several.
  private mutating func pollOneByOne(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) {
    scheduler.endOnePIDTest()
    guard let found = detection.limitedToOnePID() else { return }
    scheduler.reset()
    _ = recognition.recognise(found, &detection, &scheduler, &values, &effects)
    scheduler.resume(at: now)
  }

  /// Handles a response to the liveness check. If polling was paused, the fast request is polled again; otherwise it is replaced.
  mutating func livenessCheckAnswered(isProbing: Bool, at now: Instant) -> PollConsequence {
    scheduler.endPoll()
    guard let message = scheduler.endLivenessCheck() else { return .retry }
    if !isProbing { return .replace(Self.unansweredMessage, otherwise: .pause(message)) }
    scheduler.vehicleResponded(at: now)
    return .retry
  }

  /// Counts a response that is not BMS data, and returns the consequence.
  mutating func countForeignRecord(_ reply: [UInt8], at now: Instant, _ values: inout ValueTable, _ effects: inout Effects)
    -> PollConsequence
  {
    scheduler.pollFailed(at: now)
    values.countBadReply(reply, &effects)
    let request = scheduler.fast.request
    let message = "the response to \(request.rawValue) at \(request.target.text) is not BMS data of an electric Hyundai or Kia"
    return switch detection.countForeignRecord(request, &effects) {
    case .retry: .retry
    case .pause: .pause(message)
    case .tryOther: .tryOther(message, isFinal: false)
    }
  }

  /// Handles a failure of the fast request, and returns its consequence.
  mutating func pollFailed(
    _ failure: PollFailure, _ poll: PollScheduler.Poll, _ session: some AdapterDialogue, isProbing: Bool, at now: Instant,
    _ values: inout ValueTable, _ effects: inout Effects
  ) -> PollConsequence {
    scheduler.pollFailed(at: now)
    if let message = scheduler.endLivenessCheck() {
      switch failure {
      // No ECU responds to the request that all ECUs support: the vehicle does not respond at all.
      case .status(let status) where status.consequence == .noResponse || status.consequence == .backOff: return .pause(message)
      case .negative: return .replace(Self.unansweredMessage, otherwise: .pause(message))
      default: break
      }
    }
    switch detection.recordFailure(of: scheduler.fast.request, failure) {
    case .ended: return endDiscovery(at: now, &values, &effects)
    case .retry: return .retry
    case .none: break
    }
    timeout.recordPoll(nil, for: session.traits.name, &effects)
    scheduler.publishCounters(at: now, values, &effects)
    if poll.hasFrameCount, scheduler.dropFrameCount(after: failure) { return .retry }
    return scheduler.recordFailure(failure, isProbing: isProbing, hasLostEcho: session.hasLostEchoSetting, on: detection.bus)
  }

  /// Ends the request in flight, because its reply is missing or too long.
  mutating func abort(rejectsSTPX: Bool, at now: Instant) { scheduler.abort(isRepeated: rejectsSTPX, at: now) }

  /// Uses the long timeout, because responses repeatedly come after the adapter's timeout.
  mutating func lengthenTimeout() { timeout.lengthen() }

  /// Splits or replaces a fast request that fails although the vehicle responds. Returns false if no request is left.
  mutating func replace(_ message: String, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> Bool {
    guard scheduler.canReplace else { return false }
    let (isReplaced, failed) = scheduler.replaceFast(timeoutHasChanged: timeout.useDefault(), at: now)
    if let failed { values.withdraw(failed, message, &effects) }
    return isReplaced
  }

  /// Selects the next protocol candidate. Returns false if all candidates were tried; the caller then pauses or stops polling.
  mutating func tryOther(for adapter: String?) -> Bool {
    let (request, isLast) = detection.beginNext(after: scheduler.fast.request, vehicleRequest: scheduler.fast.vehicleRequest)
    scheduler.tryOther(request)
    if isLast { timeout.alternate(for: adapter) }
    return !isLast
  }

  // MARK: Detection

  /// Handles a reply to the request for supported PIDs.
  mutating func supportedPIDsReceived(
    _ session: some AdapterDialogue, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects, _ reaction: inout Reaction
  ) -> DiscoveryOutcome {
    let previousBus = detection.bus
    let base = scheduler.fast.request.bytes[1]
    let result = detection.supportedPIDsReceived(session.reader, base: base, reportsProtocol: session.traits.reportsProtocol)
    if case .failed(let reason) = result { return .failed(.unusable(reason)) }
    reaction.note(.usableReply)
    if detection.bus != previousBus { reaction.noteProtocol(detection.bus) }
    return .done(proceed(result, at: now, &values, &effects, &reaction))
  }

  /// Handles the protocol that the adapter has detected, or nil if the adapter does not report it.
  mutating func identified(
    _ bus: OBDProtocol?, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects, _ reaction: inout Reaction
  ) -> PollConsequence {
    let result = detection.identified(bus, after: scheduler.fast.request.bytes[1])
    reaction.noteProtocol(detection.bus)
    return proceed(result, at: now, &values, &effects, &reaction)
  }

  private mutating func proceed(
    _ result: ProtocolDetection.DiscoveryStep, at now: Instant, _ values: inout ValueTable, _ effects: inout Effects,
    _ reaction: inout Reaction
  ) -> PollConsequence {
    scheduler.endPoll()
    switch result {
    case .failed: break
    case .next(let request): scheduler.proceed(to: request, at: now)
    case .identifyProtocol: reaction.require(.identifyProtocol)
    case .ended: return endDiscovery(at: now, &values, &effects)
    }
    return .retry
  }

  /// Ends the discovery: polls the vehicle if its ECUs support a known PID.
  private mutating func endDiscovery(at now: Instant, _ values: inout ValueTable, _ effects: inout Effects) -> PollConsequence {
    scheduler.endPoll()
    let (found, request) = detection.endDiscovery(vehicleRequest: scheduler.fast.vehicleRequest)
    scheduler.begin(request)
    scheduler.discoveryEnded()
    guard recognition.recognise(found, &detection, &scheduler, &values, &effects) else {
      return .tryOther("the vehicle supports no known PID", isFinal: false)
    }
    values.reportVehicle(&effects)
    scheduler.resume(at: now)
    return .retry
  }

  /// Restarts detection, with this request if it is not nil, because the vehicle is another one, or has other ECUs or PIDs.
  private mutating func repeatDetection(
    _ note: String, with request: FastRequest? = nil, _ effects: inout Effects, _ reaction: inout Reaction
  ) {
    effects.append(.note("\(note): repeating vehicle detection"))
    scheduler.restartDetection(with: detection.restart(with: request, vehicleRequest: scheduler.fast.vehicleRequest))
    reaction.note(.vehicleResponded)
  }

  // MARK: Other requests

  /// Handles the reply to a queued request.
  mutating func requestReplied(
    _ index: Int, sent: Instant, _ parsed: ReplyReader.Outcome, _ session: some AdapterDialogue, at now: Instant,
    _ values: inout ValueTable, _ effects: inout Effects, _ reaction: inout Reaction
  ) {
    let request = scheduler.queue.requests[index]
    if parsed == .messages, recognition.selectProfile(request, session.reader, at: now, &detection, &scheduler, &values, &effects) {
      return reaction.note(.usableReply)
    }
    if request.isSupportCheck, parsed == .messages, detection.checkForNewPIDs(session.reader) {
      repeatDetection("new ECUs or PIDs found", &effects, &reaction)
    }
    if request.isBMSCheck, parsed == .messages, request.isAnsweredPlausibly(session.reader) {
      repeatDetection("the electric car responds", with: detection.bmsRequest, &effects, &reaction)
    }
    switch scheduler.requestReplied(index, sent: sent, parsed, session, at: now, &values, &effects) {
    case .missed: break
    case .settingsLost(let status): reaction.require(.settingsLost(status, at: now))
    case .rejectsSTPX: reaction.note(.rejectsSTPX)
    case .unusable(let reason, let isUnreadable):
      if isUnreadable, session.usesSTPX { reaction.note(.stpxCountsFrames) }
      values.countBadReply(session.reply, &effects)
      reaction.require(.count(.unusable(reason, resynchronising: true)))
    case .identified(let text):
      reaction.note(.usableReply)
      guard let position = request.rows.first?.position, values.name(at: position) == "vin",
        detection.recordVIN(text, &effects)
      else { return }
      values.withdrawAll(except: position, "the VIN has changed", &effects)
      repeatDetection("the VIN has changed", &effects, &reaction)
    case .answered(let completeness, let isSplit):
      reaction.note(.usableReply)
      // The ECU answers only the first of several PIDs: store this.
      if isSplit, completeness == .one { detection.limitToOnePID(&effects) }
      if request.isReplaced, completeness == .all, case .standard = detection.vehicle {
        scheduler.restoreFast(index, maxPIDs: detection.maxPIDs)
      }
    }
  }

  /// Requests all values at once, because clearing trouble codes may have changed them.
  mutating func requestAllNow(at now: Instant) { scheduler.requestAllNow(at: now) }

  mutating func publishCounters(at now: Instant, _ values: ValueTable, _ effects: inout Effects) {
    scheduler.publishCounters(at: now, values, &effects)
  }

  mutating func tune(_ id: CommandID, for adapter: String?, _ effects: inout Effects) { timeout.tune(id, for: adapter, &effects) }
  mutating func cancelTuning(_ id: CommandID) { timeout.cancelTuning(id) }
}
