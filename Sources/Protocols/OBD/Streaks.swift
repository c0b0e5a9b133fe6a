extension OBDMachine {
  /// What happened several times in a row since the last answer.
  struct Streaks {
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
    /// Answers that are no battery page.
    var foreign = 0
    /// Answers of another length than the standard's.
    var misfits = 0
    /// Refusals of parameters.
    var negatives = 0
    /// Requests that made way for the next.
    var madeWay = 0
    var timeouts = 0
    var backOffs = 0
    /// The controllers have just told what they know.
    var hasDiscovered = false
  }
}
