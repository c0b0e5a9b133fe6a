extension OBDMachine {
  /// Counters of consecutive events since the last response.
  struct ErrorCounters {
    /// The vehicle has answered this request on this connection.
    var isSettled = false
    /// Polls answered in part.
    var shortAnswers = 0
    var refusals = 0
    var silences = 0
    var disturbances = 0
    var busy = 0
    var unusable = 0
    /// Replies to the polled request that were damaged or interrupted.
    var spoilt = 0
    /// Responses that are not BMS data.
    var foreign = 0
    /// Responses of wrong length.
    var misfits = 0
    /// Negative responses to PIDs.
    var negatives = 0
    /// Requests replaced by the next.
    var madeWay = 0
    var timeouts = 0
    var backOffs = 0
    /// The ECUs have just reported their supported PIDs.
    var hasDiscovered = false
  }
}
