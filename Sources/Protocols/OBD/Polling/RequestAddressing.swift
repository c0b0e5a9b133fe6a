// The addressing that each request needs.

extension VehiclePolling {
  /// The addressing of the fast request.
  var fastAddressing: ECUAddressing {
    let request = scheduler.fast.request
    return addressing(of: request.target, isPatient: timeout.isLong, asksAll: request.isDiscovery)
  }

  func addressing(of request: PollRequest) -> ECUAddressing {
    addressing(of: request.target, isPatient: request.isPatient, asksAll: request.isCheck)
  }

  /// Tuned timing is that of the polled ECU. On CAN discovery uses the full timeout, because all ECUs respond.
  private func addressing(of target: Target, isPatient: Bool, asksAll: Bool) -> ECUAddressing {
    let isTuned = target == scheduler.fast.request.target && target.reply != nil
    let timing: ReplyTiming =
      isPatient ? .responsePending : asksAll && detection.bus.isCAN ? .functional : isTuned ? timeout.timing : .initial
    return ECUAddressing(bus: detection.bus.adapted(to: target), target: target, timing: timing)
  }
}
