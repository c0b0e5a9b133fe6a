// The addressing that each request needs.

extension VehiclePolling {
  /// The addressing of the fast request.
  var fastAddressing: ECUAddressing {
    let request = scheduler.fast.request
    return addressing(of: request.target, usesLongTimeout: timeout.isLong, requestsAllECUs: request.isDiscovery)
  }

  func addressing(of request: PollRequest) -> ECUAddressing {
    addressing(of: request.target, usesLongTimeout: request.usesLongTimeout, requestsAllECUs: request.isSupportCheck)
  }

  /// Tuned timing applies to the ECU of the fast request only. Requests to all ECUs on CAN wait for the full timeout.
  private func addressing(of target: Target, usesLongTimeout: Bool, requestsAllECUs: Bool) -> ECUAddressing {
    let isTuned = target == scheduler.fast.request.target && target.reply != nil
    let timing: ReplyTiming =
      usesLongTimeout ? .responsePending : requestsAllECUs && detection.bus.isCAN ? .functional : isTuned ? timeout.timing : .initial
    return ECUAddressing(bus: detection.bus.adapted(to: target), target: target, timing: timing)
  }
}
