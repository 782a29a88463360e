/** Ratings: how strong the levels are, and how a result changes the rating of a person (Elo 1978). */

import { remember, stored } from "./settings.js";

const STEP = 32; // the largest change in points for one game

let levels = []; // [{id, rating}], as the server has measured them

export function setLevels(all) {
  levels = all.filter(({ rating }) => rating !== undefined);
}

export function ratingOf(id) {
  return levels.find((level) => level.id === id)?.rating;
}

/** Return whether the ratings of the levels were measured on boards of this size. */
export const isMeasured = ({ rows, cols }) => rows === 5 && cols === 5;

/** Return the rating of the person on boards of this size. */
export function ownRating({ rows, cols }) {
  const { rating, ratings } = stored();
  return ratings?.[`${rows}x${cols}`] ?? rating;
}

/** Change the rating of the person on boards of this size after a result against a rating. */
export function rate(board, other, result) {
  const rating = ratedAfter(ownRating(board), other, result);
  remember({ ratings: { ...stored().ratings, [`${board.rows}x${board.cols}`]: rating } });
}

/** Return the id of the level with the nearest rating, or "2" if no rating is known. */
export function levelNear(rating) {
  const distance = (level) => Math.abs(level.rating - rating);
  return levels.length ? levels.reduce((best, level) => (distance(level) < distance(best) ? level : best)).id : "2";
}

/** Return the new rating after a result against another rating: 1 won, 0.5 drawn, 0 lost. */
function ratedAfter(own, other, result) {
  const expected = 1 / (1 + 10 ** ((other - own) / 400));
  const change = STEP * (result - expected);
  return own + Math.sign(change) * Math.max(1, Math.round(Math.abs(change))); // any change is at least one point
}
